/** Checks whether bytes begin a tar archive, plain or gzip. This is a first check; the node checks again. Pure. */

import { constants, gunzipSync } from "node:zlib";

export type ArchiveKind = "tar" | "tar.gz";

/** Number of leading bytes that the check needs. */
export const HEAD_BYTES = 65_536;

const BLOCK = 512;
/** Position of the checksum field in a tar header; the checksum counts its own field as blanks. */
const SUM_AT = 148;
const SUM_LENGTH = 8;

/** Undefined: neither plain tar nor gzip. `head` may be cut anywhere after `HEAD_BYTES`. */
export function archiveKind(head: Buffer): ArchiveKind | undefined {
  if (head[0] !== 0x1f || head[1] !== 0x8b) return isTar(head) ? "tar" : undefined;
  try {
    const block = gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 128 * 1024 * 1024 });
    return isTar(block) ? "tar.gz" : undefined;
  } catch {
    return undefined;
  }
}

function isTar(bytes: Buffer): boolean {
  if (bytes.length < BLOCK) return false;
  const block = bytes.subarray(0, BLOCK);
  // An empty archive begins with its end: blocks of zeros.
  if (block.every((byte) => byte === 0)) return true;
  const stored = Number.parseInt(block.toString("latin1", SUM_AT, SUM_AT + SUM_LENGTH).replaceAll(/[^0-7]/g, ""), 8);
  let sum = SUM_LENGTH * 32;
  for (const [at, byte] of block.entries()) if (at < SUM_AT || at >= SUM_AT + SUM_LENGTH) sum += byte;
  return stored === sum;
}
