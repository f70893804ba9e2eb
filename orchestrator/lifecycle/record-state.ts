/** What a record says about its sandbox: paused, being resumed from its own snapshot, ended, lost with its node. Pure. */

import { shownState } from "../../shared/states/sandbox-state.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import { totalBytes } from "../store/storage/stored-bytes.ts";

/** Paused, or `starting` with a resume under way. */
export function isResuming({ state, resumption }: Pick<SandboxRecord, "state" | "resumption">): boolean {
  return state === "starting" && resumption !== undefined;
}

/**
 * What becomes of a sandbox whose node is lost. `paused`: its own snapshot is as it was. `elsewhere`: the same, where the snapshot is in
 * another place too; the node may have used up its own by the start. `stays`: it waits for its node, or somebody else settles it.
 */
export function afterLoss({
  state,
  resumption,
  rewind,
}: Pick<SandboxRecord, "state" | "resumption" | "rewind">): "ends" | "paused" | "elsewhere" | "stays" {
  switch (state) {
    case "running":
    case "pausing":
    case "snapshotting":
      return "ends";
    case "rewinding":
      return rewind?.from === "paused" ? "paused" : "ends";
    case "starting":
      return resumption === undefined ? "stays" : "elsewhere";
    case "paused":
    case "killing":
    case "gone":
      return "stays";
  }
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
export function endedAtOf({
  state,
  endedAt,
  endAt,
}: Pick<SandboxRecord, "state" | "endedAt" | "endAt">): number | undefined {
  if (state === "killing") return endAt;
  return state === "gone" ? (endedAt ?? endAt) : undefined;
}
