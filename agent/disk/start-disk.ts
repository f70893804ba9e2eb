/** Constructs the disk reserve, and connects it to what it holds: sandboxes are frozen, builds fail. */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import type { AgentConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import { type GrowerDeps, growerOf } from "./growers.ts";
import { watchOwnFiles } from "./own-files.ts";
import { createReserve, type DiskReserve } from "./reserve.ts";
import type { ReadSpace } from "./space.ts";

export interface DiskDeps {
  readonly config: Pick<AgentConfig, "diskReserveMb" | "stateDir">;
  readonly containers: Pick<Containers, "facts">;
  readonly readSpace: ReadSpace;
  /** Running sandboxes that an earlier agent process started. */
  readonly found: readonly Sandbox[];
  readonly now: () => number;
  readonly log: Log;
}

/** Until `watchDisk` the reserve says that there is room. */
export function createDisk(deps: DiskDeps): DiskReserve {
  const { config, containers, found } = deps;
  const reserve = createReserve({
    ...deps,
    configuredMb: config.diskReserveMb,
    dataRoot: () => dataRootOf(containers),
    snapshots: config.stateDir,
  });
  for (const { executionId, container } of found) if (container.cgroup.frozen()) reserve.adopt(executionId);
  return reserve;
}

export interface WatchDiskDeps extends Pick<GrowerDeps, "growth" | "diskUsage"> {
  readonly disk: DiskReserve;
  readonly containers: Pick<Containers, "facts">;
  readonly sandboxes: Pick<Sandboxes, "running" | "end">;
  readonly builds: BuildParts;
  readonly usage: Pick<UsageSampling, "latest">;
  readonly onChange: () => void;
  readonly log: Log;
}

const FAILED = "the build was ended: the node's disk is short, and the build grew most";

export function watchDisk(deps: WatchDiskDeps, teardown: Teardown): void {
  const { disk, containers, sandboxes, builds, usage, onChange, log } = deps;
  const growerDeps = { ...deps, lastUsed: (id: string) => usage.latest(id)?.diskUsed ?? 0 };
  teardown.add("disk reserve", () => disk.stop());
  disk.begin({
    growers: () => [
      ...sandboxes
        .running()
        .map(({ executionId, container }) =>
          growerOf({ id: executionId, container, end: () => sandboxes.end(executionId, "disk_full") }, growerDeps),
        ),
      ...builds.buildContainers().map(({ buildId, container }) => {
        // Fails a build instead of freezing it: a frozen build helps no user, and a later build can repeat its work.
        const fail = () => builds.builds.fail(buildId, new AppError("no_space", FAILED));
        return growerOf({ id: buildId, container, hold: fail, end: async () => fail() }, growerDeps);
      }),
    ],
    onChange,
  });
  const files = watchOwnFiles({
    dataRoot: () => dataRootOf(containers),
    containers: () => [...sandboxes.running(), ...builds.buildContainers()].map(({ container }) => container.id),
    log,
  });
  teardown.add("Docker's files", () => files.stop());
}

async function dataRootOf(containers: Pick<Containers, "facts">): Promise<string> {
  return (await containers.facts()).dataRoot;
}
