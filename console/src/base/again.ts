/** Requests that go on when the platform comes back: it restarts within seconds, and the network of a laptop returns. */

import { Failed } from "./failed.ts";
import { UNREACHED } from "./foreign.ts";

/** Before each further try; the last one comes after a minute. */
const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** Nothing answers, or a proxy in front of the platform says so. */
const LOST = new Set([0, ...UNREACHED]);

interface Waiting {
  /** The request got no answer, and is sent again after a while. */
  readonly lost: () => void;
  readonly wait?: (ms: number) => Promise<void>;
}

/**
 * Sends a request until the platform answers.
 * @param send a request that may arrive twice
 * @throws {Failed} the platform's refusal, or the last failure when nothing has answered for a minute
 */
export async function untilAnswered<T>(send: () => Promise<T>, { lost, wait = sleep }: Waiting): Promise<T> {
  for (const ms of WAITS_MS) {
    try {
      return await send();
    } catch (error) {
      if (!isLost(error)) throw error;
      lost();
      await wait(ms);
    }
  }
  return send();
}

/** Whether a request got no answer of the platform: it restarts, or the way to it has changed. */
export function isLost(error: unknown): boolean {
  return error instanceof Failed && LOST.has(error.status);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
