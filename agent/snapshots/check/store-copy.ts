/** Reads the copy of a snapshot, or of a template's image, in the blob store to its end: each blob has the content that its name says. */

import type { CheckedPart } from "../../../shared/agent-api/snapshot-check-shapes.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import { fetchManifest } from "../../blobs/download.ts";
import type { BlobReader } from "../../blobs/sources.ts";
import { runTransfers, type Transfers } from "../../blobs/transfers.ts";
import type { TreeManifest } from "../../blobs/trees/manifest.ts";
import { type CheckOptions, type PartNotes, partNotes } from "./part.ts";

export interface StoreCopyDeps {
  /** Of the store alone. */
  readonly reader: BlobReader;
  readonly transfers: Transfers;
}

interface Tree {
  readonly part: CheckedPart["part"];
  readonly notes: PartNotes;
  /** Undefined: the notes say why. */
  readonly manifest: TreeManifest | undefined;
}

/** @throws {BlobError} unreachable, denied: the store cannot be read now */
export async function checkStoreCopy(ref: string, deps: StoreCopyDeps, options: CheckOptions): Promise<CheckedPart[]> {
  const memory = await treeOf("memory", ref, deps, options);
  const trees = [memory];
  for (const part of ["disk", "image"] as const)
    trees.push(await treeOf(part, memory.manifest?.parts?.[part], deps, options));
  return readTrees(trees, deps, options);
}

/** Of a template: its image alone. @throws {BlobError} as above */
export async function checkStoredImage(ref: string, deps: StoreCopyDeps, options: CheckOptions): Promise<CheckedPart> {
  const tree = await treeOf("image", ref, deps, options);
  await readTrees([tree], deps, options);
  return tree.notes.outcome("whole");
}

async function treeOf(
  part: Tree["part"],
  of: string | undefined,
  { reader }: StoreCopyDeps,
  { signal, read }: CheckOptions,
): Promise<Tree> {
  const notes = partNotes(part, read);
  if (of === undefined) notes.fault("unread", "the manifest of the snapshot names none, or cannot be read");
  const manifest = of === undefined ? undefined : await whole(notes, () => fetchManifest(reader, of, signal), signal);
  return { part, notes, manifest };
}

async function readTrees(
  trees: readonly Tree[],
  { reader, transfers }: StoreCopyDeps,
  { signal, total }: CheckOptions,
): Promise<CheckedPart[]> {
  total(trees.reduce((sum, { manifest }) => sum + (manifest === undefined ? 0 : bytesOf(manifest)), 0));
  for (const { manifest, notes } of trees) {
    if (manifest === undefined) continue;
    await runTransfers(transfers, manifest.blobs, signal, async ([blob, length], cut) => {
      const content = await whole(notes, () => reader.read(blob, cut), cut);
      if (content !== undefined && content.length !== length)
        notes.fault("damaged", `blob ${blob} has ${content.length} bytes, and its manifest says ${length}`);
      notes.read(length);
    });
  }
  return trees.map(({ notes }) => notes.outcome("whole"));
}

/** Undefined: it is damaged or missing, which is noted. A store that does not answer is no damage, and ends the check. */
async function whole<T>(notes: PartNotes, read: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof BlobError)) throw error;
    const { fault, message } = error;
    if (fault !== "damaged" && fault !== "missing" && fault !== "unreadable") throw error;
    notes.fault(fault === "unreadable" ? "unread" : fault, message);
    return undefined;
  }
}

function bytesOf({ blobs }: TreeManifest): number {
  return blobs.reduce((sum, [, length]) => sum + length, 0);
}
