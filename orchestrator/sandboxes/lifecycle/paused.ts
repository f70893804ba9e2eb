/** Whether a record belongs to a sandbox that is paused or being resumed from its own snapshot. Pure. */

import { shownState } from "../../../shared/states/sandbox-state.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";

/** Paused, or `starting` with a resume under way. */
export function isResuming({ state, resumption }: Pick<SandboxRecord, "state" | "resumption">): boolean {
  return state === "starting" && resumption !== undefined;
}

/** The state as the API shows it. */
export function shown(record: Pick<SandboxRecord, "state" | "resumption">): "running" | "paused" | undefined {
  return shownState(record.state, isResuming(record));
}
