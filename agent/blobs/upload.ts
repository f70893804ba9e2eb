/**
 * Writes a tree of files to a store: what is there already is not sent again, so an upload that was cut goes on where it was.
 * The manifest comes last. Until its reference is recorded, the period in the names of blobs protects them (`content/refs`).
 */

import { defined } from "../../shared/defined.ts";
import { BlobError } from "./content/blob-error.ts";
import { type BlobCodec, MAX_CONTENT_BYTES } from "./content/codec.ts";
import { keyOf, PERIOD_MS, parseRef, periodAt, refOf } from "./content/refs.ts";
import type { BlobStore } from "./stores/store.ts";
import { runTransfers, type Transfers } from "./transfers.ts";
import { type FindExtents, isZero } from "./trees/extents.ts";
import { dataOf, type PlannedBlob, planBlobs, plannedBytes } from "./trees/layout.ts";
import { type Entry, MANIFEST_FORMAT, type Piece, type TreeManifest, writeManifest } from "./trees/manifest.ts";
import { readPart } from "./trees/read-part.ts";
import { checkUnchanged, type Scanned, scanTree } from "./trees/scan.ts";

export interface UploadProgress {
  readonly totalBytes: number;
  readonly doneBytes: number;
  /** Of the bytes done, those that the store did not have; before compression. */
  readonly sentBytes: number;
}

export interface Upload {
  /** A directory, or a file. Nothing may write to it meanwhile. */
  readonly root: string;
  readonly kind: TreeManifest["kind"];
  readonly origins?: TreeManifest["origins"];
  /** Manifests of trees that were uploaded in the same period, and go with this one. */
  readonly parts?: TreeManifest["parts"];
  readonly note?: string;
  /** When the upload began that this one is a part of, unix milliseconds; its time is limited as a whole. Absent: now. */
  readonly begun?: number;
  /**
   * Manifests whose blobs are in the store, and stay there until this upload is recorded, because the caller holds references to
   * them: the template of a sandbox, its last snapshot. Their blobs are neither looked for nor sent.
   */
  readonly bases?: readonly TreeManifest[];
  /** Blobs that a reader has found damaged in this store: they are written again. */
  readonly distrusted?: ReadonlySet<string>;
  readonly progress?: (now: UploadProgress) => void;
}

export interface Uploaded {
  /** Of the manifest. To be recorded at once. */
  readonly ref: string;
  readonly manifest: TreeManifest;
  readonly sentBytes: number;
}

export interface UploadDeps {
  /** Undefined: the tree is only described, so that other nodes can read it from this one. */
  readonly store: BlobStore | undefined;
  readonly codec: BlobCodec;
  readonly extents: FindExtents;
  readonly transfers: Transfers;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** @throws {BlobError} */
export async function uploadTree(deps: UploadDeps, upload: Upload, signal: AbortSignal): Promise<Uploaded> {
  const { root, kind, origins, parts, note, bases = [], distrusted = new Set<string>(), progress } = upload;
  const { begun = deps.now() } = upload;
  const scanned = await scanTree(root, deps.extents);
  const put = createPut(deps, { period: periodAt(begun), known: refsById(bases), distrusted });
  const state = { totalBytes: plannedBytes(scanned), doneBytes: 0, sentBytes: 0 };
  const planned: { readonly blob: PlannedBlob; readonly ref: string | undefined }[] = [];
  progress?.({ ...state });

  await runTransfers(deps.transfers, [...planBlobs(scanned)].entries(), signal, async ([index, blob], cut) => {
    const content = Buffer.alloc(blob.length);
    for (const { file, ...part } of blob.parts) await readPart(root, { path: file.path, ...part }, content);
    const stored = isZero(content) ? undefined : await put(content, cut);
    planned[index] = { blob, ref: stored?.ref };
    state.doneBytes += dataOf(blob);
    if (stored?.sent === true) state.sentBytes += content.length;
    progress?.({ ...state });
  });

  await checkUnchanged(root, scanned);
  const manifest = manifestOf(scanned, planned, { kind, ...defined({ origins, parts, note }) });
  const content = writeManifest(manifest);
  if (content.length > MAX_CONTENT_BYTES)
    throw new BlobError("changed", `${root} cannot be stored: it has too many files or pieces for one manifest`);
  const { ref, sent } = await put(content, signal);
  const took = deps.now() - begun;
  if (took > PERIOD_MS)
    throw new BlobError(
      "late",
      `the upload of ${root} took ${Math.round(took / 60_000)} minutes; it has to begin again`,
    );
  return { ref, manifest, sentBytes: state.sentBytes + (sent ? content.length : 0) };
}

/** Whether an upload that began then may name this tree as its part: none of its blobs is too old to count on. */
export function isRecent({ ref, manifest }: Pick<Uploaded, "ref" | "manifest">, begun: number): boolean {
  const refs = [ref, ...manifest.blobs.map(([blob]) => blob)];
  return refs.every((each) => parseRef(each).period >= periodAt(begun) - 1);
}

interface Put {
  (content: Buffer, signal: AbortSignal): Promise<{ readonly ref: string; readonly sent: boolean }>;
}

function createPut(
  { store, codec }: Pick<UploadDeps, "store" | "codec">,
  {
    period,
    known,
    distrusted,
  }: {
    readonly period: number;
    readonly known: ReadonlyMap<string, string>;
    readonly distrusted: ReadonlySet<string>;
  },
): Put {
  /** The same content twice in a tree is one blob. */
  const underWay = new Map<string, Promise<{ ref: string; sent: boolean }>>();

  const find = async (id: string, signal: AbortSignal): Promise<string | undefined> => {
    const refs = [refOf(id, period), refOf(id, period - 1)];
    if (store === undefined) return refs[0];
    const sizes = await Promise.all(refs.map((ref) => store.size(keyOf(ref), signal)));
    return refs.find((ref, index) => sizes[index] !== undefined && !distrusted.has(ref));
  };

  const send = async (id: string, content: Buffer, signal: AbortSignal) => {
    const base = known.get(id);
    const found = base === undefined || distrusted.has(base) ? await find(id, signal) : base;
    if (found !== undefined) return { ref: found, sent: false };
    const ref = refOf(id, period);
    await store?.put(keyOf(ref), await codec.encode(id, content), signal, true);
    return { ref, sent: true };
  };

  return async (content, signal) => {
    const id = await codec.idOf(content);
    const before = underWay.get(id);
    if (before !== undefined) return { ref: (await before).ref, sent: false };
    const sending = send(id, content, signal);
    underWay.set(id, sending);
    return sending;
  };
}

function refsById(bases: readonly TreeManifest[]): Map<string, string> {
  return new Map(bases.flatMap(({ blobs }) => blobs.map(([ref]) => [parseRef(ref).id, ref] as const)));
}

function manifestOf(
  scanned: readonly Scanned[],
  planned: readonly { readonly blob: PlannedBlob; readonly ref: string | undefined }[],
  about: Pick<TreeManifest, "kind" | "origins" | "parts" | "note">,
): TreeManifest {
  const indexes = new Map<string, number>();
  const blobs: TreeManifest["blobs"] = [];
  const pieces = new Map<string, Piece[]>();
  for (const { blob, ref } of planned) {
    if (ref === undefined) continue;
    const index = indexes.get(ref) ?? blobs.push([ref, blob.length]) - 1;
    indexes.set(ref, index);
    for (const { file, at, length, from } of blob.parts) {
      const ofFile = pieces.get(file.path) ?? [];
      ofFile.push([at, length, index, from]);
      pieces.set(file.path, ofFile);
    }
  }
  const entries = scanned.map((entry): Entry => {
    if (entry.type !== "file") return entry;
    const { path, type, mode, size } = entry;
    return { path, type, mode, size, pieces: pieces.get(path) ?? [] };
  });
  return { format: MANIFEST_FORMAT, ...about, blobs, entries };
}
