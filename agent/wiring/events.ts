/** What one part announces to others that are created after it. Listeners run at once, in the order in which they came. */

import { EventEmitter } from "node:events";
import type { ExitReport } from "../../shared/agent-api/routes.ts";

export type Events = EventEmitter<{
  /** The agent reports a change to the orchestrator soon. */
  changed: [];
  /** A sandbox has started or ended, or its end time has changed. */
  sandboxes: [];
  /** A sandbox has ended without a request, and its exit is recorded. */
  exited: [reason: ExitReport["reason"]];
  /** Docker answers again after an outage. */
  engineBack: [];
}>;

export function createEvents(): Events {
  return new EventEmitter();
}
