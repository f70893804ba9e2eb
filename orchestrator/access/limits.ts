/** The limits of a project: those that an operator set for it, else the platform's. Pure. */

import type { OrchestratorConfig } from "../config.ts";
import type { LimitName, StartLimits } from "../store/projects/limits.ts";
import type { Project } from "../store/projects/record.ts";

/** Undefined: no limit. */
type ProjectLimits = { readonly [L in LimitName]: number | undefined };

export interface Limits {
  of(project: Project): ProjectLimits;
  /** Those that the statement that records a start checks. */
  starts(project: Project): StartLimits;
  hours(project: Project): number;
}

type Settings = Pick<
  OrchestratorConfig,
  | "maxProjectSandboxes"
  | "maxProjectStartsPerMinute"
  | "maxProjectCpu"
  | "maxProjectMemoryMb"
  | "maxProjectDiskMb"
  | "maxProjectBuilds"
  | "maxProjectSnapshots"
  | "maxProjectVolumes"
  | "maxSandboxHours"
  | "maxSandboxCpu"
  | "maxSandboxMemoryMb"
  | "maxTemplateDiskMb"
  | "maxSandboxEgressRules"
>;

export function createLimits(config: Settings): Limits {
  const platform: ProjectLimits & { readonly sandboxes: number; readonly sandboxHours: number } = {
    sandboxes: config.maxProjectSandboxes,
    startsPerMinute: config.maxProjectStartsPerMinute,
    totalCPU: config.maxProjectCpu,
    totalMemoryMB: config.maxProjectMemoryMb,
    totalDiskMB: config.maxProjectDiskMb,
    sandboxHours: config.maxSandboxHours,
    sandboxCPU: config.maxSandboxCpu,
    sandboxMemoryMB: config.maxSandboxMemoryMb,
    sandboxDiskMB: config.maxTemplateDiskMb,
    builds: config.maxProjectBuilds,
    snapshots: config.maxProjectSnapshots,
    volumes: config.maxProjectVolumes,
    egressRules: config.maxSandboxEgressRules,
  };
  return {
    of: ({ limits }) => ({ ...platform, ...limits }),
    starts: ({ limits }) => ({
      sandboxes: limits.sandboxes ?? platform.sandboxes,
      startsPerMinute: limits.startsPerMinute ?? platform.startsPerMinute,
      totalCPU: limits.totalCPU ?? platform.totalCPU,
      totalMemoryMB: limits.totalMemoryMB ?? platform.totalMemoryMB,
      totalDiskMB: limits.totalDiskMB ?? platform.totalDiskMB,
    }),
    hours: ({ limits }) => limits.sandboxHours ?? platform.sandboxHours,
  };
}
