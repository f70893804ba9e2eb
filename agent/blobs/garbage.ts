/**
 * Deletes what no reference names. Several collectors may run at the same time, on any nodes: each deletes only blobs that are
 * garbage for all time, since an upload never counts on a blob that old (`content/refs`).
 */

import { BlobError } from "./content/blob-error.ts";
import { ALL_BLOBS, isRef, KEPT_PERIODS, PERIOD_MS, parseRef, periodAt, refOfKey } from "./content/refs.ts";
import { fetchManifest } from "./download.ts";
import type { BlobReader } from "./sources.ts";
import { type BlobStore, listAll } from "./stores/store.ts";

const DELETES_AT_ONCE = 8;
const READS_AT_ONCE = 4;

export interface Collection {
  /** Blobs that a reference names, or that are too young to be judged. */
  readonly kept: number;
  readonly removed: number;
  /** As they were stored. */
  readonly removedBytes: number;
  /** What killed writers had left. */
  readonly drafts: number;
}

interface CollectDeps {
  readonly store: BlobStore;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** A manifest that is in use, and a reader of its project. */
export interface LiveManifest {
  readonly ref: string;
  readonly reader: BlobReader;
}

/**
 * @param live all references of this platform, as they are at one instant: read in one transaction, which begins after this call
 * @param dryRun only counts
 * @throws {BlobError} when a manifest cannot be read; then nothing is deleted
 */
export async function collectGarbage(
  { store, now }: CollectDeps,
  {
    live,
    dryRun = false,
  }: { readonly live: AsyncIterable<LiveManifest> | Iterable<LiveManifest>; readonly dryRun?: boolean },
  signal: AbortSignal,
): Promise<Collection> {
  // The clock of before the first reference: what is written while this runs is always too young.
  const begun = now();
  const marked = await mark(live, signal);
  const oldest = periodAt(begun) - KEPT_PERIODS;
  const counts = { kept: 0, removed: 0, removedBytes: 0 };
  const garbage = listAll(store, ALL_BLOBS, signal);

  const worker = async () => {
    for await (const { key, bytes } of garbage) {
      const ref = refOfKey(key);
      // What is not ours by its name stays.
      if (ref === undefined) continue;
      if (marked.has(ref) || parseRef(ref).period >= oldest) {
        counts.kept++;
        continue;
      }
      if (!dryRun) await store.delete(key, signal);
      counts.removed++;
      counts.removedBytes += bytes;
    }
  };
  await Promise.all(Array.from({ length: DELETES_AT_ONCE }, worker));
  const drafts = dryRun ? 0 : await store.tidy(begun - KEPT_PERIODS * PERIOD_MS, signal);
  return { ...counts, drafts };
}

/** Every blob that a live manifest needs, and the manifests. About 150 bytes of memory for each, which is a cell of 4 MiB. */
async function mark(
  live: AsyncIterable<LiveManifest> | Iterable<LiveManifest>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const marked = new Set<string>();
  const markTree = async ({ ref, reader }: LiveManifest): Promise<void> => {
    if (!isRef(ref)) throw new BlobError("damaged", `${ref} is no reference of a manifest, so nothing is deleted`);
    if (marked.has(ref)) return;
    const { blobs, parts = {} } = await fetchManifest(reader, ref, signal);
    marked.add(ref);
    for (const [blob] of blobs) marked.add(blob);
    for (const part of Object.values(parts)) await markTree({ ref: part, reader });
  };
  const worker = async (manifests: AsyncGenerator<LiveManifest>) => {
    for await (const manifest of manifests) await markTree(manifest);
  };
  const shared = each(live);
  await Promise.all(Array.from({ length: READS_AT_ONCE }, () => worker(shared)));
  return marked;
}

async function* each<T>(items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T> {
  yield* items;
}
