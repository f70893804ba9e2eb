/** Events as clients see them. Pure. */

import type { PlatformEvent, SandboxEvent } from "../../shared/api/events.ts";
import type { EventRow } from "../store/tables.ts";

export function toSandboxEvent(row: EventRow): SandboxEvent {
  return {
    ...common(row),
    sandboxId: row.sandbox_id,
    sandboxExecutionId: row.execution_id,
    sandboxTemplateId: row.template_id,
    sandboxBuildId: row.build_id,
    sandboxTeamId: row.project_id,
    timestamp: new Date(row.created_at).toISOString(),
  };
}

/** An event that is about no sandbox has none of the fields that name one. */
export function toEvent(row: EventRow): PlatformEvent {
  if (row.sandbox_id !== "") return toSandboxEvent(row);
  return { ...common(row), sandboxTeamId: row.project_id, timestamp: new Date(row.created_at).toISOString() };
}

function common(row: EventRow) {
  return {
    version: "v1",
    id: row.id,
    type: row.type,
    eventData: row.data === null ? null : (JSON.parse(row.data) as Record<string, unknown>),
  };
}
