/** Says why a project could not start a sandbox or keep a snapshot: the limit, what is used of it, and whom to ask for more. */

import { AppError } from "../../shared/http/errors.ts";
import type { LimitName, StartLimits } from "../store/projects/limits.ts";
import type { ProjectUse } from "../store/projects/use.ts";
import type { Store } from "../store/store.ts";
import { refusalOf } from "./standing.ts";

interface StartSize {
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
}

export interface Refusals {
  /** Whom to ask for more. */
  readonly contact: string;
  /** The statement that records a start has refused it. */
  start(projectId: string, size: StartSize, limits: StartLimits): Promise<AppError>;
  /** The move to a snapshot was refused, perhaps by this limit. Undefined: it has another reason. */
  snapshot(projectId: string, most: number | undefined): Promise<AppError | undefined>;
  /** @throws {AppError} forbidden for more destinations than one sandbox of the project may name */
  checkEgressRules(count: number, most: number | undefined): void;
}

export interface RefusalsDeps {
  readonly store: Store;
  readonly now: () => number;
  /** Whom to ask for more. */
  readonly contact: string;
}

const MINUTE_MS = 60_000;

export function createRefusals({ store, now, contact }: RefusalsDeps): Refusals {
  async function closed(projectId: string): Promise<AppError | undefined> {
    const project = await store.projects.find(projectId);
    // Its row is the last that a deletion removes.
    return project === undefined ? refusalOf({ status: "deleting", statusReason: undefined }) : refusalOf(project);
  }

  function beyond(use: ProjectUse, size: StartSize, limits: StartLimits): AppError | undefined {
    const { sandboxes, totalCPU, totalMemoryMB, totalDiskMB } = limits;
    if (use.sandboxes >= sandboxes) {
      return new AppError(
        "too_many_sandboxes",
        `you have reached the maximum number of concurrent sandboxes (${sandboxes}): the project has ${use.sandboxes}; ` +
          `end or pause sandboxes, or ask ${contact} for more`,
      );
    }
    const totals = [
      ["CPU cores", totalCPU, use.totalCPU, size.cpuCount],
      ["MiB of memory", totalMemoryMB, use.totalMemoryMB, size.memoryMB],
      ["MiB of disk", totalDiskMB, use.totalDiskMB, size.diskSizeMB],
    ] as const;
    for (const [unit, most, used, asked] of totals) {
      if (most === undefined || used + asked <= most) continue;
      return new AppError(
        "too_many_sandboxes",
        `you have reached the maximum of ${most} ${unit} of running sandboxes: the project uses ${used} and this one needs ` +
          `${asked} more; end or pause sandboxes, or ask ${contact} for more`,
      );
    }
    return undefined;
  }

  /** The number of starts is the only limit left that may have refused the start. */
  async function tooFast(projectId: string, used: number, most: number | undefined): Promise<AppError> {
    const oldest = (await store.projectUse.oldestStart(projectId)) ?? now();
    const retryAfterSeconds = Math.min(60, Math.max(1, Math.ceil((oldest + MINUTE_MS - now()) / 1000)));
    // Another sandbox ended, or a start failed, since the statement counted.
    if (most === undefined || used < most) {
      return new AppError("rate_limited", "the project was at a limit when the sandbox was about to start; try again", {
        retryAfterSeconds: 1,
      });
    }
    return new AppError(
      "rate_limited",
      `you have reached the maximum of ${most} sandbox starts a minute: the project had ${used}; try again in ` +
        `${retryAfterSeconds} s, or ask ${contact} for more`,
      { retryAfterSeconds },
    );
  }

  return {
    contact,

    async start(projectId, size, limits) {
      const use = await store.projectUse.of(projectId);
      return (
        (await closed(projectId)) ??
        beyond(use, size, limits) ??
        (await tooFast(projectId, use.startsPerMinute, limits.startsPerMinute))
      );
    },

    async snapshot(projectId, most) {
      const refused = await closed(projectId);
      if (refused !== undefined || most === undefined) return refused;
      const { snapshots: used } = await store.projectUse.of(projectId);
      if (used < most) return undefined;
      return new AppError(
        "forbidden",
        `the project may keep ${most} snapshots and has ${used}: delete snapshots, or ask ${contact} for more`,
      );
    },

    checkEgressRules(count, most) {
      if (most === undefined || count <= most) return;
      throw new AppError(
        "forbidden",
        `the network options name ${count} destinations, and a sandbox of this project may name ${most}: name ranges or ` +
          `wildcards, or ask ${contact} for more`,
      );
    },
  };
}

/** What an operator reads beside each limit; undefined: the limit is of each sandbox, so nothing adds up. */
export function usedOf(use: ProjectUse, name: LimitName): number | undefined {
  switch (name) {
    case "sandboxes":
    case "startsPerMinute":
    case "totalCPU":
    case "totalMemoryMB":
    case "totalDiskMB":
    case "builds":
    case "snapshots":
      return use[name];
    case "volumes":
    case "sandboxHours":
    case "sandboxCPU":
    case "sandboxMemoryMB":
    case "sandboxDiskMB":
    case "egressRules":
      return undefined;
  }
}
