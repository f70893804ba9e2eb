/** Constructs what knows the node: what it can do, its limits, and the reserve of its disk. */

import { watchCapabilities } from "../host/capability-watch.ts";
import { createLimitWatch } from "../host/limit-watch.ts";
import { createReserve } from "../node-disk/reserve.ts";
import type { Base } from "./base.ts";
import type { Recovered } from "./recovery.ts";

export type NodeParts = Awaited<ReturnType<typeof createNode>>;

export async function createNode(base: Base, { found }: Recovered) {
  const { config, machine, stores, events, now, log, teardown } = base;
  const { host, docker, disks, abilities } = machine;
  const seen = await machine.procfs.keep(() => stores.containers.all());
  const capabilities = await watchCapabilities({
    probe: () => abilities.probe(seen),
    fingerprint: abilities.fingerprint,
    onChange: () => void events.emit("changed"),
    log,
  });
  teardown.add("capabilities", () => capabilities.stop());
  const limits = createLimitWatch({ read: () => host.limits(), log });
  teardown.add("limits of the kernel", () => limits.stop());
  const byLease = new Set(stores.lease.get()?.frozen);
  const frozen = found.sandboxes.filter(
    ({ executionId, container }) => container.cgroup.frozen() && !byLease.has(executionId),
  );
  const disk = createReserve({
    configuredMb: config.diskReserveMb,
    dataRoot: async () => (await docker.containers.facts()).writableRoot,
    snapshots: config.stateDir,
    readSpace: disks.readSpace,
    held: frozen.map(({ executionId }) => executionId),
    now,
  });
  return { capabilities, limits, disk };
}
