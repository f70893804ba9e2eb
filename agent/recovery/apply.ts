/** Carries out the recovery plan. The firewall comes first, so that no sandbox runs without its rules during recovery. */

import type { Log } from "../../shared/program/log.ts";
import type { OpenCgroup } from "../containers/cgroup/cgroup.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { FoundFrozen } from "../snapshots/frozen/frozen.ts";
import type { SnapshotMachine } from "../snapshots/machine.ts";
import { interruptedResumes } from "../snapshots/restore/interrupted.ts";
import { interruptedSnapshots } from "../snapshots/take/interrupted.ts";
import type { KnownContainer } from "../store/containers.ts";
import type { Stores } from "../store/stores.ts";
import { planRecovery } from "./plan.ts";

export interface RecoveryDeps {
  readonly machine: SnapshotMachine;
  readonly stores: Stores;
  readonly now: () => number;
  readonly log: Log;
}

export interface RecoveryResult {
  readonly sandboxes: readonly Sandbox[];
  readonly pooled: readonly LiveContainer[];
  /** Frozen containers of paused sandboxes. */
  readonly frozen: readonly FoundFrozen[];
  /** Slots without an owner; they can be destroyed once `cleared` resolves. */
  readonly leftoverSlots: readonly number[];
  /** Resolves when the leftovers, which are removed in the background, are gone. */
  readonly cleared: Promise<void>;
}

export async function recover({ machine, stores, now, log }: RecoveryDeps): Promise<RecoveryResult> {
  const { docker, network, memory } = machine;
  const { containers, annotations } = docker;
  const { plan, links, firewall } = network;
  await annotations.callOff();
  const goOn = await interruptedSnapshots({ docker, memory, stores, now, log });
  await interruptedResumes({ docker, memory, stores, log });
  const known = stores.containers.all();
  const executions = stores.executions.all();
  const policies = new Map(executions.filter(({ running }) => running).map((one) => [one.containerId, one.egress]));
  await links.prepare();
  await firewall.rebuild(
    known.map(({ id, slot: number }) => {
      const { link, address } = plan.slot(number);
      return { link, address, policy: policies.get(id) };
    }),
  );

  const [found, slots, annotated, runtime] = await Promise.all([
    containers.list(),
    links.list(),
    annotations.list(),
    docker.runtime().catch(() => ({ directory: "" })),
  ]);
  const cgroups = new Map(known.map((container) => [container.id, tryOpen(docker.openCgroup, container)]));
  const steps = planRecovery({
    known,
    executions,
    found,
    slots,
    annotations: annotated,
    runtime: runtime.directory,
    paused: new Map(
      stores.snapshots
        .all()
        .filter(({ kind, state }) => kind === "pause" && state === "stored")
        .map(({ id, disk, resuming }) => [disk.containerId, { snapshotId: id, resuming }]),
    ),
    held: stores.remains.held().containers,
    building: new Set(
      stores.builds
        .all()
        .filter(({ state }) => state === "building")
        .map(({ id }) => id),
    ),
    alive: ({ id }) => cgroups.get(id)?.alive() === true,
  });

  const live = (container: KnownContainer): LiveContainer => {
    const cgroup = cgroups.get(container.id);
    if (cgroup === undefined) throw new Error("planned to keep a container that is not alive");
    return { ...container, slot: plan.slot(container.slot), cgroup };
  };
  for (const { id, sandboxId, containerId } of steps.ended) {
    const seen = await containers.inspect(containerId);
    const reason = seen === undefined ? "lost" : seen.oomKilled ? "out_of_memory" : "exited";
    const exitCode = seen === undefined ? {} : { exitCode: seen.exitCode };
    stores.executions.exit({ executionId: id, sandboxId, reason, ...exitCode, at: now() });
  }
  for (const { id } of steps.unstarted) stores.executions.remove(id);
  for (const id of [...goOn, ...steps.goOn]) {
    const container = steps.sandboxes.find((one) => one.container.id === id)?.container;
    if (container === undefined) continue;
    const { cgroup, slot, controlToken } = live(container);
    await memory.connections
      .mend(slot)
      .catch((error: unknown) =>
        log.warn({ err: error, containerId: id }, "could not check the network of a container"),
      );
    cgroup.thaw();
    docker.envd
      .resumeWatches({ address: slot.address, controlToken })
      .catch((error: unknown) =>
        log.warn({ err: error, containerId: id }, "could not resume the watches of a container"),
      );
  }

  const clear = async () => {
    for (const { id, name } of steps.rename)
      await containers
        .rename(id, name)
        .catch((error: unknown) => log.debug({ err: error }, "could not rename a container"));
    for (const id of steps.kill) await (cgroups.get(id)?.kill() ?? containers.kill(id));
    // A container that stays has no row from here on, so the janitor removes it.
    for (const id of steps.removeContainers)
      await containers
        .remove(id)
        .catch((error: unknown) => log.warn({ err: error, containerId: id }, "could not remove a container yet"));
    for (const id of steps.removeAnnotations) await annotations.remove(id);
    for (const id of steps.forgetContainers) stores.containers.remove(id);
  };
  const { sandboxes, pooled, frozen, ended, removeContainers } = steps;
  log.info(
    {
      sandboxes: sandboxes.length,
      pooled: pooled.length,
      frozen: frozen.length,
      ended: ended.length,
      removed: removeContainers.length,
    },
    "took over the sandboxes of an earlier agent process",
  );
  return {
    sandboxes: sandboxes.map(({ container, execution }) => ({
      executionId: execution.id,
      sandboxId: execution.sandboxId,
      projectId: execution.projectId,
      container: live(container),
      egress: execution.egress,
      startedAt: execution.startedAt,
      warm: execution.warm,
      // Only the answer to a start has this field, and that start has been answered.
      restored: "nothing" as const,
      onTimeout: execution.onTimeout,
      endAt: execution.endAt,
      record: execution.record,
    })),
    pooled: pooled.map(live),
    frozen: frozen.map(({ container, snapshotId, ran }) => ({ container: live(container), snapshotId, ran })),
    leftoverSlots: steps.removeSlots,
    cleared: clear(),
  };
}

function tryOpen(openCgroup: OpenCgroup, { pid, id }: KnownContainer) {
  try {
    return openCgroup(pid, id);
  } catch {
    return undefined;
  }
}
