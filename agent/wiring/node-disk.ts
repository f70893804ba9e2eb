/** Constructs the disk reserve, and connects it to what it holds: sandboxes are frozen, builds fail. */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import type { AgentConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import { createDiskAccount, type DiskAccount, type PromisedDisk } from "../node-disk/account.ts";
import type { KeepBallast } from "../node-disk/ballast.ts";
import type { DropSources } from "../node-disk/dropping.ts";
import { type GrowerDeps, growerOf } from "../node-disk/growers.ts";
import { watchOwnFiles } from "../node-disk/own-files.ts";
import { createReserve, type DiskReserve } from "../node-disk/reserve.ts";
import type { ReadSpace } from "../node-disk/space.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import type { FrozenContainers } from "../snapshots/frozen/frozen.ts";
import type { Holding } from "../snapshots/store/holding.ts";
import type { Stores } from "../store/stores.ts";
import type { Volumes } from "../volumes/volumes.ts";
import type { Events } from "./events.ts";

export interface DiskPartsDeps extends Pick<GrowerDeps, "growth" | "diskUsage"> {
  readonly containers: Pick<Containers, "facts">;
  readonly readSpace: ReadSpace;
  readonly keepBallast: KeepBallast;
  readonly volumes: Pick<Volumes, "list">;
  readonly now: () => number;
  readonly log: Log;
}

interface GrowingParts {
  readonly disk: DiskReserve;
  readonly events: Events;
  readonly stores: Stores;
  readonly usage: UsageSampling;
  readonly live: LiveSet;
  readonly pool: Pool;
  readonly frozen: FrozenContainers;
  readonly holding: Holding;
  readonly disposal: Disposal;
  readonly sandboxes: Sandboxes;
  readonly building: BuildParts;
}

const BALLAST_EVERY_MS = 1_000;
const FAILED = "the build was ended: the node's disk is short, and the build grew most";

/** Until `startDisk` the reserve says that there is room. */
export function createDisk(
  config: Pick<AgentConfig, "diskReserveMb" | "stateDir">,
  deps: DiskPartsDeps,
  { found }: { readonly found: RecoveryResult },
): DiskReserve {
  const { containers } = deps;
  const disk = createReserve({
    ...deps,
    configuredMb: config.diskReserveMb,
    dataRoot: async () => (await containers.facts()).writableRoot,
    snapshots: config.stateDir,
  });
  for (const { executionId, container } of found.sandboxes) {
    if (container.cgroup.frozen()) disk.adopt(executionId);
  }
  return disk;
}

export function startDisk(deps: DiskPartsDeps, parts: GrowingParts, teardown: Teardown): DiskAccount {
  const { containers, log } = deps;
  const { disk, events, stores, usage, live, pool, sandboxes, building } = parts;
  const lastUsed = (id: string) => usage.latest(id)?.diskUsed ?? 0;
  const promised = (): PromisedDisk[] => [
    ...[...live.running(), ...live.leaving()].map(({ executionId, container: { id, resources } }) => ({
      containerId: id,
      resources,
      usedBytes: lastUsed(executionId),
    })),
    ...stores.snapshots
      .all()
      .filter(({ kind, state }) => kind === "pause" && state === "stored")
      .map(({ disk: { containerId, resources }, diskBytes }) => ({ containerId, resources, usedBytes: diskBytes })),
    ...[...pool.containers(), ...building.buildContainers().map(({ container }) => container)].map(
      ({ id, resources }) => ({ containerId: id, resources, usedBytes: 0 }),
    ),
    ...deps.volumes.list().map(({ id, sizeMb, usedBytes }) => ({
      containerId: `volume ${id}`,
      resources: { diskSizeMB: sizeMb },
      usedBytes,
    })),
  ];

  const growerDeps = { ...deps, lastUsed };
  teardown.add("disk reserve", () => disk.stop());
  disk.begin({
    growers: () => [
      ...sandboxes
        .running()
        .map(({ executionId, container }) =>
          growerOf({ id: executionId, container, end: () => sandboxes.end(executionId, "disk_full") }, growerDeps),
        ),
      ...building.buildContainers().map(({ buildId, container }) => {
        // Fails a build instead of freezing it: a frozen build helps no user, and a later build can repeat its work.
        const fail = () => building.builds.fail(buildId, new AppError("no_space", FAILED));
        return growerOf({ id: buildId, container, hold: fail, end: async () => fail() }, growerDeps);
      }),
    ],
    onChange: () => void events.emit("changed"),
    remakable: remakableOf(parts),
    onPressure: (pressure) => {
      pool.setFilling(pressure === "none");
      events.emit("changed");
    },
  });
  const ballast = loop({ name: "ballast", everyMs: BALLAST_EVERY_MS, log }, () => deps.keepBallast());
  teardown.add("ballast", () => ballast.stop());
  const files = watchOwnFiles({
    dataRoot: () => dataRootOf(containers),
    containers: () => [...sandboxes.running(), ...building.buildContainers()].map(({ container }) => container.id),
    log,
  });
  teardown.add("Docker's files", () => files.stop());
  return createDiskAccount(() => disk.seen(), promised);
}

function remakableOf({ pool, frozen, holding, building, disposal }: GrowingParts): DropSources {
  const drops = {
    held: (id: string) => holding.drop(id, "the node's disk is short"),
    pool: (id: string) => pool.drop(id),
    frozen: (id: string) => frozen.dropStored(id),
    layers: (id: string) => building.cache.drop(id),
  };
  return {
    there: () => ({
      held: holding.list(),
      pool: pool.containers(),
      frozen: frozen.kept(),
      layers: building.cache.layers(),
    }),
    drop: (of, id) => drops[of](id),
    settled: () => disposal.settled(),
  };
}

async function dataRootOf(containers: Pick<Containers, "facts">): Promise<string> {
  return (await containers.facts()).dataRoot;
}
