/** Whether a record belongs to a sandbox that is paused or being resumed from its own snapshot. Pure. */

import { shownState } from "../../../shared/states/sandbox-state.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import { totalBytes } from "../../store/storage/size.ts";

/** Paused, or `starting` with a resume under way. */
export function isResuming({ state, resumption }: Pick<SandboxRecord, "state" | "resumption">): boolean {
  return state === "starting" && resumption !== undefined;
}

/** Bytes of memory and disk that a paused sandbox takes on its node; undefined when it is not paused, or not known. */
export function storedBytes(record: Pick<SandboxRecord, "state" | "resumption" | "snapshot">): number | undefined {
  if (record.state !== "paused" && !isResuming(record)) return undefined;
  const size = record.snapshot?.size;
  return size === undefined ? undefined : totalBytes(size);
}

/** The state as the API shows it. */
export function shown(record: Pick<SandboxRecord, "state" | "resumption">): "running" | "paused" | undefined {
  return shownState(record.state, isResuming(record));
}
