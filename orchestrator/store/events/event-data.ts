/** `eventData` of lifecycle events: the fields that clients of the wire protocol know, beside those of one type. Pure. */

import type { EventType } from "../../../shared/api/events.ts";
import { defined } from "../../../shared/defined.ts";
import type { SandboxRecord } from "../sandboxes/record.ts";

/** The sandbox that an event is about; without the facts of its record, the event has only the given data. */
export type EventSubject = Pick<SandboxRecord, "id" | "projectId" | "executionId" | "templateId" | "buildId"> &
  Partial<
    Pick<
      SandboxRecord,
      "metadata" | "startedAt" | "endedAt" | "cpuCount" | "memoryMB" | "address" | "resumption" | "rewind"
    >
  >;

export type EventData = Readonly<Record<string, unknown>>;

/**
 * @param given fields of this type of event; no secret may be among them
 * @param wasPaused the sandbox's execution had ended before, with a pause
 */
export function eventData(
  type: EventType,
  sandbox: EventSubject,
  given: EventData | undefined,
  { now, wasPaused }: { readonly now: number; readonly wasPaused: boolean },
): EventData | undefined {
  const execution = type === "paused" || (type === "killed" && !wasPaused) ? executionOf(sandbox, now) : undefined;
  const data = {
    ...defined({ sandbox_metadata: sandbox.metadata, execution }),
    ...given,
  };
  return Object.keys(data).length === 0 ? undefined : data;
}

/** Undefined for a sandbox that never ran, or whose start was under way. */
function executionOf({ startedAt, endedAt, cpuCount, memoryMB, address, ...record }: EventSubject, now: number) {
  if (startedAt === undefined || address === undefined || record.resumption !== undefined) return undefined;
  if (record.rewind?.from === "paused") return undefined;
  return {
    started_at: new Date(startedAt).toISOString(),
    vcpu_count: cpuCount,
    memory_mb: memoryMB,
    execution_time: Math.max(0, (endedAt ?? now) - startedAt),
  };
}
