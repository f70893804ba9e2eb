/** Converts the filter of a list or count of sandboxes to an SQL condition. */

import type { ExpressionBuilder } from "kysely";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Tables } from "../tables.ts";

export interface SandboxFilter {
  readonly projectId: string;
  readonly states: readonly SandboxState[];
  readonly metadata?: ReadonlyMap<string, string>;
  readonly startedAfter?: number;
  readonly templateId?: string;
  /** Includes sandboxes that are being resumed, which the API shows as `paused` until they run. */
  readonly resuming?: boolean;
  /** Without sandboxes that ended before this time. */
  readonly endedSince?: number;
}

export function matches(where: ExpressionBuilder<Tables, "sandboxes">, filter: SandboxFilter) {
  const shown = where("state", "in", filter.states);
  const resuming = where.and([where("state", "=", "starting"), where("snapshot_id", "is not", null)]);
  const conditions = [
    where("project_id", "=", filter.projectId),
    filter.resuming === true ? where.or([shown, resuming]) : shown,
  ];
  if (filter.startedAfter !== undefined) conditions.push(where("started_at", ">=", filter.startedAfter));
  if (filter.endedSince !== undefined) {
    conditions.push(where.or([where("state", "!=", "gone"), where("ended_at", ">=", filter.endedSince)]));
  }
  if (filter.templateId !== undefined) conditions.push(where("template_id", "=", filter.templateId));
  for (const [name, value] of filter.metadata ?? []) {
    conditions.push(
      where.exists(
        where
          .selectFrom("sandbox_metadata")
          .select("sandbox_id")
          .whereRef("sandbox_metadata.sandbox_id", "=", "sandboxes.id")
          .where("sandbox_metadata.name", "=", name)
          .where("sandbox_metadata.value", "=", value),
      ),
    );
  }
  return where.and(conditions);
}
