/** Whether a record is of a sandbox that sleeps or is being woken: it starts from its own snapshot. Pure. */

import { shownState } from "../../../shared/states/sandbox-state.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";

/** Paused, and on its way back: `starting` with a resume under way. */
export function isResuming({ state, resumption }: Pick<SandboxRecord, "state" | "resumption">): boolean {
  return state === "starting" && resumption !== undefined;
}

/** As reads show it. */
export function shown(record: Pick<SandboxRecord, "state" | "resumption">): "running" | "paused" | undefined {
  return shownState(record.state, isResuming(record));
}
