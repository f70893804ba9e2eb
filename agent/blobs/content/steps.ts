/** Hashing in steps, each of which blocks this program for a third of a millisecond. */

import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";

const STEP_BYTES = 512 * 1024;

/** Lets other work of this program run between two steps. */
export async function* inSteps(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    if (at > 0) await nextTurn();
    yield bytes.subarray(at, at + STEP_BYTES);
  }
}

export async function sha256(bytes: Uint8Array): Promise<Buffer> {
  const hash = createHash("sha256");
  for await (const step of inSteps(bytes)) hash.update(step);
  return hash.digest();
}
