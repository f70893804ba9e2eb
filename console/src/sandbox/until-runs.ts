/** Waits for a sandbox whose connection was lost, before anything is asked of it again. */

import type { SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get } from "../base/client.ts";
import { pause } from "../base/stream.ts";

const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

interface Waiting {
  /** The sandbox stands still: it is paused, or a drain is moving it. */
  still(): void;
  /** It has ended: there is nothing to wait for. */
  ended(): void;
}

/**
 * While the platform says that the sandbox does not run, a request to it would be refused. Where nothing answers, the caller may
 * try all the same. False: the sandbox has ended, or `left` is aborted.
 */
export async function untilRuns(id: string, waiting: Waiting, left: AbortSignal): Promise<boolean> {
  let wait = SHORTEST_WAIT_MS;
  while (!left.aborted) {
    const state = await stateOf(id, left);
    if (left.aborted) return false;
    if (state === "ended") {
      waiting.ended();
      return false;
    }
    if (state !== "paused") return true;
    waiting.still();
    await pause(wait, left);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
  return false;
}

async function stateOf(id: string, left: AbortSignal): Promise<SandboxDetail["state"] | undefined> {
  try {
    return (await get<SandboxDetail>(`/sandboxes/${encodeURIComponent(id)}`, { ended: true }, left)).state;
  } catch {
    return undefined;
  }
}
