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

/** A sandbox that has a snapshot is in this state while it is being resumed. */
const RESUMING: SandboxState = "starting";

/**
 * Splits the filter into one for each state, so that a sandbox matches one of them at most. An index holds the sandboxes of
 * one state in the order of a list, but not those of several states.
 */
export function byState(filter: SandboxFilter): SandboxFilter[] {
  const parts = filter.states.map((state) => ({ ...filter, states: [state], resuming: false }));
  const apart = filter.resuming === true && !filter.states.includes(RESUMING);
  return apart ? [...parts, { ...filter, states: [], resuming: true }] : parts;
}

/** Returns the state of one of those filters. */
export function stateOf({ states }: SandboxFilter): SandboxState {
  return states[0] ?? RESUMING;
}

export function matches(where: ExpressionBuilder<Tables, "sandboxes">, filter: SandboxFilter) {
  const states = filter.resuming === true ? [...new Set([...filter.states, RESUMING])] : filter.states;
  const [only, ...more] = states;
  const ofStates = only !== undefined && more.length === 0 ? where("state", "=", only) : where("state", "in", states);
  const conditions = [where("project_id", "=", filter.projectId), ofStates];
  if (filter.resuming === true && !filter.states.includes(RESUMING)) {
    conditions.push(where.or([where("state", "!=", RESUMING), where("snapshot_id", "is not", null)]));
  }
  if (filter.startedAfter !== undefined) conditions.push(where("started_at", ">=", filter.startedAfter));
  if (filter.endedSince !== undefined && states.includes("gone")) {
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
