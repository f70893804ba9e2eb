/** What becomes of a request that was under way when its sandbox was taken from its node. Pure. */

import type { Refusal } from "../answers/answers.ts";
import type { Whereabouts } from "../sandbox-lookup.ts";

interface Interrupted {
  readonly sandboxId: string;
  /** The execution that may have got the request. */
  readonly executionId: string;
  /** The request would have been sent again if its sandbox ran. */
  readonly repeats: boolean;
}

/** The answer to a request that is not sent again. The visitor had been admitted, so it may know that the sandbox is paused. */
export function afterInterruption(found: Whereabouts, { sandboxId, executionId, repeats }: Interrupted): Refusal {
  if (found.is === "not_found") return { is: "not_found", sandboxId };
  // The sandbox ended by itself, and the record does not say so yet.
  if (found.is === "running" && found.route.executionId === executionId) return { is: "not_found", sandboxId };
  const staysPaused = found.is === "paused" && !found.moving;
  if (repeats) return { is: staysPaused ? "paused" : "transitioning", sandboxId };
  return { is: "interrupted", sandboxId, by: staysPaused ? "pause" : "move" };
}
