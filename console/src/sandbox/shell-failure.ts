/** What a terminal does when the stream of its shell has failed. Pure. */

import { Failed } from "../base/failed.ts";

/** `start`: there is no such shell any more, so another one begins. `end`: no further try is allowed. */
type Next = "start" | "again" | "end";

/** @param isNew the shell was to be started, and not found again */
export function afterFailure(error: unknown, isNew: boolean): Next {
  if (!(error instanceof Failed)) return "again";
  // Of a new shell it says that the sandbox has no such program.
  if (error.code === "not_found") return isNew ? "end" : "start";
  // The session or the sandbox has ended, or the key does not allow it. A drain may be moving a sandbox that does not run.
  return [401, 403, 404].includes(error.status) ? "end" : "again";
}

/** Refusals that have a reason of the sandbox: it stands still, or envd has ended the stream with an error. */
const OF_SANDBOX = [409, 200];

/** What the terminal shows while it tries again. */
export function waitingText(error: unknown): string {
  const why = error instanceof Failed && OF_SANDBOX.includes(error.status) ? error.message : "the connection was lost";
  return `${why}, connecting again …`;
}
