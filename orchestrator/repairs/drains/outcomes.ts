/** What a drain has come to with a sandbox, in the words of its rows. Pure. */

import { AppError } from "../../../shared/http/errors.ts";
import { cleanDetail } from "../../../shared/states/end-reason.ts";
import type { DrainOutcome } from "../../store/nodes/drains.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";

const MAX_REASON = 500;

/** What became of a sandbox that something else has changed, or that has arrived. */
export function asFound(record: Pick<SandboxRecord, "state" | "nodeId"> | undefined, home: string): DrainOutcome {
  if (record === undefined || record.state === "gone" || record.state === "killing") return { state: "ended" };
  if (record.nodeId !== home) return { state: "moved", toNode: record.nodeId };
  return { state: "stays", reason: `it is ${record.state} on its node` };
}

export function stays(error: unknown): DrainOutcome {
  return { state: "stays", reason: reasonOf(error) };
}

export function reasonOf(error: unknown): string {
  return cleanDetail(AppError.from(error).message, MAX_REASON) ?? "the reason is not known";
}
