/** Trees of files for the tests of uploads and downloads: random ones with holes, and their comparison. */

import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { lstat, mkdir, open, readdir, readFile, readlink, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { createCodec } from "../../../../agent/blobs/content/codec.ts";
import { downloadTree, fetchManifest } from "../../../../agent/blobs/download.ts";
import { type BlobSource, createReader } from "../../../../agent/blobs/sources.ts";
import { createTransfers } from "../../../../agent/blobs/transfers.ts";
import { hostExtents } from "../../../../agent/blobs/trees/extents.ts";
import type { UploadDeps } from "../../../../agent/blobs/upload.ts";
import { runCommand } from "../../../../agent/host/command.ts";
import { nativeProgram } from "../../../../agent/host/native-program.ts";

export interface Range {
  readonly at: number;
  readonly length: number;
  /** What its bytes are made from; 0 is zeros that are written. */
  readonly seed: number;
}

export interface TestFile {
  readonly path: string;
  readonly size: number;
  readonly ranges: readonly Range[];
}

const MIB = 1024 * 1024;

/** Small files, and large ones with data here and there, also at the edges of cells. */
export const trees = fc.uniqueArray(
  fc.record({
    path: fc.constantFrom("a", "b", "c", "d", "folder/e", "folder/f", "folder/deep/g"),
    size: fc.oneof(fc.nat(3_000), fc.integer({ min: 0, max: 6 * MIB }), fc.constantFrom(4 * MIB, 5 * MIB, 256 * 1024)),
    ranges: fc.array(
      fc.record({
        at: fc.oneof(fc.nat(6 * MIB), fc.constantFrom(0, 4 * MIB - 1, 4 * MIB, 5 * MIB - 4_096)),
        length: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 300_000 })),
        seed: fc.nat(3),
      }),
      { maxLength: 3 },
    ),
  }),
  { selector: ({ path }) => path, maxLength: 5 },
);

/** Makes the directory with these files, a link and an empty directory. */
export async function makeTree(root: string, files: readonly TestFile[]): Promise<void> {
  await mkdir(join(root, "folder", "deep"), { recursive: true });
  await mkdir(join(root, "empty"), { mode: 0o750 });
  await symlink("folder/deep", join(root, "link"));
  for (const { path, size, ranges } of files) await writeRanges(join(root, path), size, ranges);
}

export async function writeRanges(path: string, size: number, ranges: readonly Range[]): Promise<void> {
  // Makes the file where it is not there yet.
  await (await open(path, "a", 0o640)).close();
  const file = await open(path, "r+");
  try {
    await file.truncate(size);
    for (const { at, length, seed } of ranges) {
      const fits = Math.min(length, size - at);
      if (fits > 0) await file.write(contentOf(seed, fits), 0, fits, at);
    }
  } finally {
    await file.close();
  }
}

function contentOf(seed: number, length: number): Buffer {
  if (seed === 0) return Buffer.alloc(length);
  const block = Buffer.concat(
    Array.from({ length: 64 }, (_, index) => createHash("sha256").update(`${seed} ${index}`).digest()),
  );
  return Buffer.alloc(length, block);
}

/** Every path below the root with its type, mode and content, and how many bytes the files take. */
export async function readTree(root: string): Promise<{ entries: Record<string, string>; allocated: number }> {
  const entries: Record<string, string> = {};
  let allocated = 0;
  const visit = async (path: string) => {
    const full = join(root, path);
    const stats = await lstat(full);
    const mode = (stats.mode & 0o777).toString(8);
    if (stats.isSymbolicLink()) entries[path] = `link to ${await readlink(full)}`;
    else if (stats.isDirectory()) {
      entries[path] = `directory ${mode}`;
      for (const name of await readdir(full)) await visit(path === "" ? name : `${path}/${name}`);
    } else {
      const digest = createHash("sha256")
        .update(await readFile(full))
        .digest("hex");
      entries[path] = `file ${mode} ${stats.size} ${digest}`;
      allocated += stats.blocks * 512;
    }
  };
  await visit("");
  return { entries, allocated };
}

const KEY = "a secret of the platform, long enough to be one";

/** Compiled once, in a directory of this process, which goes with it. */
const programs = join(tmpdir(), `svc-extents-${process.pid}`);
const compiled: { program?: Promise<string> } = {};
const program = () => (compiled.program ??= nativeProgram(runCommand, "blobs/trees/svc-extents", programs));
process.once("exit", () => rmSync(programs, { recursive: true, force: true }));

/** What an upload needs, with a clock that the test moves. */
export function uploading(store: UploadDeps["store"], { sealed = false }: { readonly sealed?: boolean } = {}) {
  const clock = { now: Date.UTC(2026, 10, 26) };
  const codec = createCodec({ keys: sealed ? [KEY] : [], domain: "project" });
  const extents = hostExtents(runCommand, program);
  return { clock, deps: { store, codec, extents, transfers: createTransfers(), now: () => clock.now } };
}

export type Uploading = ReturnType<typeof uploading>["deps"];

function reading(deps: Uploading, ...sources: readonly BlobSource[]) {
  return createReader({ sources, codec: deps.codec, now: deps.now });
}

/** Downloads what the sources have under this reference, as another node would. */
export async function download(
  deps: Uploading,
  {
    ref,
    to,
    sources,
    given = new AbortController().signal,
  }: { ref: string; to: string; sources: readonly BlobSource[]; given?: AbortSignal },
) {
  const reader = reading(deps, ...sources);
  const manifest = await fetchManifest(reader, ref, given);
  await downloadTree({ reader, transfers: createTransfers() }, { manifest, to }, given);
  return { manifest, reader };
}

/** A tree of three blobs: one of small files, and two cells of a disk. */
export async function threeBlobs(place: string): Promise<{ place: string; root: string }> {
  const root = join(place, "tree");
  await makeTree(root, [
    { path: "a", size: 2_000, ranges: [{ at: 0, length: 2_000, seed: 1 }] },
    { path: "folder/e", size: 100, ranges: [{ at: 0, length: 100, seed: 2 }] },
    {
      path: "disk",
      size: 4 * MIB + 500_000,
      ranges: [
        { at: 0, length: 10_000, seed: 1 },
        { at: 4 * MIB + 10, length: 400_000, seed: 3 },
      ],
    },
  ]);
  return { place, root };
}
