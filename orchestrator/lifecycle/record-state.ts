/** What a record says about its sandbox: paused, being resumed from its own snapshot, ended. Pure. */

import { shownState } from "../../shared/states/sandbox-state.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import { totalBytes } from "../store/storage/stored-bytes.ts";

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

/** When the sandbox ended; while it is being killed, when that began. Undefined: it has not ended. */
export function endedAtOf({ state, endedAt, endAt }: SandboxRecord): number | undefined {
  if (state === "killing") return endAt;
  return state === "gone" ? (endedAt ?? endAt) : undefined;
}
