/** The limits of a project: their names, and the columns of those that an operator set for it. Pure. */

import { number, table } from "../codec.ts";

/** The names are those of the API. */
export const limitFields = {
  sandboxes: number("max_sandboxes").later(),
  startsPerMinute: number("max_starts_per_minute").later(),
  totalCPU: number("max_total_cpu").later(),
  totalMemoryMB: number("max_total_memory_mb").later(),
  totalDiskMB: number("max_total_disk_mb").later(),
  sandboxHours: number("max_sandbox_hours").later(),
  sandboxCPU: number("max_cpu").later(),
  sandboxMemoryMB: number("max_memory_mb").later(),
  sandboxDiskMB: number("max_disk_mb").later(),
  builds: number("max_builds").later(),
  snapshots: number("max_snapshots").later(),
  volumes: number("max_volumes").later(),
  egressRules: number("max_egress_rules").later(),
};

export type LimitName = keyof typeof limitFields;
export const LIMIT_NAMES = Object.keys(limitFields) as LimitName[];

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

/** The columns of a change. */
export const limitColumns = table(limitFields).toColumns;
