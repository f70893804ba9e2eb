/** The limits of a project: their names, and the columns of those that an operator set for it. Pure. */

import type { ProjectRow } from "./row.ts";

/** Limit → column. The names are those of the API. */
export const LIMIT_COLUMNS = {
  sandboxes: "max_sandboxes",
  startsPerMinute: "max_starts_per_minute",
  totalCPU: "max_total_cpu",
  totalMemoryMB: "max_total_memory_mb",
  totalDiskMB: "max_total_disk_mb",
  sandboxHours: "max_sandbox_hours",
  sandboxCPU: "max_cpu",
  sandboxMemoryMB: "max_memory_mb",
  sandboxDiskMB: "max_disk_mb",
  builds: "max_builds",
  snapshots: "max_snapshots",
  volumes: "max_volumes",
  egressRules: "max_egress_rules",
} as const satisfies Record<string, keyof ProjectRow>;

export type LimitName = keyof typeof LIMIT_COLUMNS;
export const LIMIT_NAMES = Object.keys(LIMIT_COLUMNS) as LimitName[];

/** The limits that an operator set for the project; for the others the platform's hold. */
export type OwnLimits = { readonly [L in LimitName]?: number };
/** A change of them: null takes a limit back. */
export type LimitChange = { readonly [L in LimitName]?: number | null };

/** The limits on starting a sandbox, which are checked by the statement that records the start. Absent: no limit. */
export interface StartLimits {
  readonly sandboxes: number;
  readonly startsPerMinute?: number | undefined;
  /** Over all running sandboxes. */
  readonly totalCPU?: number | undefined;
  readonly totalMemoryMB?: number | undefined;
  readonly totalDiskMB?: number | undefined;
}

export function ownLimits(row: ProjectRow): OwnLimits {
  const set = LIMIT_NAMES.map((name) => [name, row[LIMIT_COLUMNS[name]]] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== null));
}

/** The columns of a change. */
export function limitColumns(change: LimitChange): Partial<Record<(typeof LIMIT_COLUMNS)[LimitName], number | null>> {
  const named = LIMIT_NAMES.filter((name) => change[name] !== undefined);
  return Object.fromEntries(named.map((name) => [LIMIT_COLUMNS[name], change[name]]));
}
