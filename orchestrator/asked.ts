/** Asking a node for something that may be asked twice: silence is not an answer, so it is asked again for a while. */

import { setTimeout as sleep } from "node:timers/promises";
import { isError } from "../shared/errors.ts";

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;

/** The node's answer or its refusal; AppError `node_unreachable` when it stayed silent: what it did is then not known. */
export async function asked<T>(
  ask: () => Promise<T>,
  limits: { readonly now: () => number; readonly patienceMs: number },
): Promise<T> {
  const until = limits.now() + limits.patienceMs;
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)) {
    try {
      return await ask();
    } catch (reason) {
      if (!isError(reason, "node_unreachable") || limits.now() + waitMs > until) throw reason;
    }
    await sleep(waitMs);
  }
}
