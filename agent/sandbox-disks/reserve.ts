/**
 * Blocks that ext4 keeps for its own bookkeeping. On a full disk ext4 takes every freed block back for it first. Docker and the overlay
 * make directories anew at each start, so a start on a full disk borrows some of these blocks.
 */

import { realpathSync, statSync } from "node:fs";
import { readFile, statfs, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { blockDevice } from "./unwritten.ts";

/** More than a start needs, and little beside what is kept: programs that go on writing as soon as they run may get these too. */
const LENT_BLOCKS = 16;

/**
 * Does the work of a start. A mounted disk that is full lends it blocks, and takes back what is left. The kernel sets the number anew at
 * each mount. A disk that can lend nothing, such as one that was just removed, leaves it to the work to say why it fails.
 */
export async function lending<T>(place: string, work: () => Promise<T>): Promise<T> {
  const takeBack = await lend(place).catch(() => undefined);
  try {
    return await work();
  } finally {
    await takeBack?.().catch(() => undefined);
  }
}

async function lend(place: string): Promise<(() => Promise<void>) | undefined> {
  const { bfree, bavail } = await statfs(place);
  if (bavail >= LENT_BLOCKS) return undefined;
  const loop = basename(realpathSync(blockDevice(statSync(place).dev)));
  const file = `/sys/fs/ext4/${loop}/reserved_clusters`;
  const kept = await readFile(file, "utf8");
  await writeFile(file, String(Math.max(0, bfree - LENT_BLOCKS)));
  return () => writeFile(file, kept);
}
