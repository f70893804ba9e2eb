/** Starts the watch of the node's disk, and connects it to what it holds and drops. */

import { loop } from "../../shared/program/loop.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import { growersOf, growingContainers } from "../disk-pressure/growing.ts";
import { promisedDisks } from "../disk-pressure/promised.ts";
import { remakableOf } from "../disk-pressure/remakable.ts";
import type { Lease } from "../lease/lease.ts";
import { createDiskAccount, type DiskAccount } from "../node-disk/account.ts";
import { watchOwnFiles } from "../node-disk/own-files.ts";
import { startPressure } from "../node-disk/pressure.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";
import type { Base } from "./base.ts";
import type { NodeParts } from "./node.ts";
import type { LiveParts, SandboxParts } from "./sandboxes.ts";

const BALLAST_EVERY_MS = 1_000;

interface PressureSources {
  readonly node: NodeParts;
  readonly live: LiveParts;
  readonly lease: Pick<Lease, "isFrozen">;
  readonly stored: SnapshotParts;
  readonly own: SandboxParts;
  readonly building: BuildParts;
}

export function startDiskPressure(
  base: Base,
  { node, live, lease, stored, own, building }: PressureSources,
): DiskAccount {
  const { machine, stores, events, now, log, teardown } = base;
  const { docker, disks, volumes } = machine;
  const { pool, sandboxes } = own;
  const lastUsed = (id: string) => live.usage.latest(id)?.diskUsed ?? 0;
  const growing = { sandboxes, building, staysFrozen: lease.isFrozen };
  const growerDeps = { growth: disks.growth, diskUsage: disks.usage, lastUsed };
  const pressure = startPressure({
    reserve: node.disk,
    dataRoot: async () => (await docker.containers.facts()).writableRoot,
    growers: () => growersOf(growing, growerDeps),
    onChange: () => void events.emit("changed"),
    remakable: remakableOf({ pool, stored, building, disposal: live.disposal }),
    onPressure: (how) => {
      pool.setFilling(how === "none");
      events.emit("changed");
    },
    now,
    log,
  });
  teardown.add("disk reserve", () => pressure.stop());
  const ballast = loop({ name: "ballast", everyMs: BALLAST_EVERY_MS, log }, () => disks.keepBallast());
  teardown.add("ballast", () => ballast.stop());
  const files = watchOwnFiles({
    dataRoot: async () => (await docker.containers.facts()).dataRoot,
    containers: () => growingContainers(growing),
    log,
  });
  teardown.add("Docker's files", () => files.stop());
  const promised = { live: live.set, stores, building, volumes, lastUsed };
  return createDiskAccount(
    () => node.disk.seen(),
    () => promisedDisks(promised),
  );
}
