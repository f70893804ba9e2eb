/**
 * The blocks that ext4 keeps for its own bookkeeping, and takes when a disk is full. A start makes directories anew, Docker's and the
 * overlay's: what of the disk was freed for them goes to that bookkeeping first, so a start on a full disk borrows some of its blocks.
 */

import { realpathSync, statSync } from "node:fs";
import { readFile, statfs, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { blockDevice } from "./unwritten.ts";

/** More than a start needs, and little beside what is kept: programs that go on writing as soon as they run may get these too. */
const LENT_BLOCKS = 16;

const nothing = () => Promise.resolve();

/**
 * Lends what a start needs, where a mounted disk is full. Resolves to the function that takes the rest back; the kernel sets it anew at
 * each mount. Where it cannot lend, as with a disk that has just been removed, the start says why it fails.
 */
export function lendBlocks(place: string): Promise<() => Promise<void>> {
  return lend(place).catch(() => nothing);
}

async function lend(place: string): Promise<() => Promise<void>> {
  const { bfree, bavail } = await statfs(place);
  if (bavail >= LENT_BLOCKS) return nothing;
  const loop = basename(realpathSync(blockDevice(statSync(place).dev)));
  const file = `/sys/fs/ext4/${loop}/reserved_clusters`;
  const kept = await readFile(file, "utf8");
  await writeFile(file, String(Math.max(0, bfree - LENT_BLOCKS)));
  return () => writeFile(file, kept).catch(nothing);
}
