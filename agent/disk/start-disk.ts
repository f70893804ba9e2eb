/** Connects the reserve to what it holds: sandboxes are frozen, builds fail. */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import type { AgentConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Metrics } from "../sandboxes/usage.ts";
import { type GrowerDeps, growerOf } from "./growers.ts";
import { watchOwnFiles } from "./own-files.ts";
import { createReserve, type DiskReserve } from "./reserve.ts";
import type { ReadSpace } from "./space.ts";

export interface StartDiskDeps extends Pick<GrowerDeps, "growth" | "diskUsage"> {
  readonly config: Pick<AgentConfig, "diskReserveMb" | "stateDir">;
  readonly containers: Pick<Containers, "facts">;
  readonly readSpace: ReadSpace;
  readonly sandboxes: Pick<Sandboxes, "running" | "end">;
  readonly builds: BuildParts;
  readonly metrics: Pick<Metrics, "latest">;
  /** Running sandboxes of an agent before this one. */
  readonly found: readonly Sandbox[];
  readonly onChange: () => void;
  readonly now: () => number;
  readonly log: Log;
}

const FAILED = "the build was ended: the node's disk is short, and it grew most on it";

/** Makes the watch over the disk; it runs from `begin` on. */
export function startDisk(deps: StartDiskDeps, teardown: Teardown): DiskReserve {
  const { config, sandboxes, builds, metrics } = deps;
  const growerDeps = { ...deps, lastUsed: (id: string) => metrics.latest(id)?.diskUsed ?? 0 };
  const dataRoot = async () => (await deps.containers.facts()).dataRoot;
  const reserve = createReserve({
    ...deps,
    configuredMb: config.diskReserveMb,
    dataRoot,
    snapshots: config.stateDir,
    growers: () => [
      ...sandboxes
        .running()
        .map(({ executionId, container }) =>
          growerOf({ id: executionId, container, end: () => sandboxes.end(executionId, "disk_full") }, growerDeps),
        ),
      ...builds.buildContainers().map(({ buildId, container }) => {
        // A frozen build has no use, and what it wrote can be made again.
        const fail = () => builds.builds.fail(buildId, new AppError("no_space", FAILED));
        return growerOf({ id: buildId, container, hold: fail, end: async () => fail() }, growerDeps);
      }),
    ],
  });
  teardown.add("disk reserve", () => reserve.stop());
  const files = watchOwnFiles({
    dataRoot,
    containers: () => [...sandboxes.running(), ...builds.buildContainers()].map(({ container }) => container.id),
    log: deps.log,
  });
  teardown.add("engine's files", () => files.stop());
  for (const { executionId, container } of deps.found) if (container.cgroup.frozen()) reserve.adopt(executionId);
  return reserve;
}
