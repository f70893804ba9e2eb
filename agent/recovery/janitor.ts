/** Periodic repairs: retries failed removals, restores a changed firewall, deletes old records and ownerless containers. */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { AgentConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { Procfs } from "../procfs/procfs.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { SnapshotMachine } from "../snapshots/machine.ts";
import { removeGarbage } from "../snapshots/store/garbage.ts";
import type { Stores } from "../store/stores.ts";
import { releaseRemains } from "./remains.ts";

const HOUR_MS = 3_600_000;
/** How long a stop is remembered, and an unacknowledged exit kept. */
const REMEMBER_MS = 24 * HOUR_MS;
const RETRY_REMOVALS_MS = 10_000;
const PRUNE_EVERY_MS = 600_000;
const RELEASE_EVERY_MS = 60_000;
const SWEEP_EVERY_MS = 120_000;
const PROCFS_EVERY_MS = 5_000;
/** Longer than the agent waits for Docker's answer to a create (60 s): a container that nothing here knows by then has no owner. */
const OWNERLESS_MS = 70_000;

export interface JanitorDeps {
  readonly config: AgentConfig;
  readonly machine: SnapshotMachine & { readonly procfs: Procfs };
  readonly reach: Reach;
  readonly disposal: Disposal;
  readonly stores: Stores;
  readonly instruments: { readonly firewallRepaired: () => void };
  readonly now: () => number;
  readonly log: Log;
}

export function startJanitor(deps: JanitorDeps) {
  const { config, machine, reach, disposal, stores, instruments, now, log } = deps;
  const { containers } = machine.docker;
  const { firewall } = machine.network;
  const { files } = machine.memory;
  const sweep = loop(
    { name: "sweep", everyMs: SWEEP_EVERY_MS, log },
    createSweep({ containers, stores, now: () => performance.now(), log }),
  );
  const timers = { again: undefined as NodeJS.Timeout | undefined };
  const repairs = loop({ name: "firewall", everyMs: config.firewallCheckMs, log }, async () => {
    const restored = await firewall.repair();
    if (restored.length === 0) return;
    log.warn({ restored }, "another program changed the firewall or the forwarding of this host; it has been restored");
    instruments.firewallRepaired();
    reach.wake();
  });
  firewall.watch({ table: () => repairs.wake(), host: () => reach.wake() });
  const rounds = [
    repairs,
    sweep,
    loop({ name: "held remains", everyMs: RELEASE_EVERY_MS, log }, () => releaseRemains({ stores, now, log })),
    loop({ name: "garbage", everyMs: PRUNE_EVERY_MS, log }, () => removeGarbage({ containers, files, stores, now })),
    loop({ name: "disks", everyMs: RETRY_REMOVALS_MS, log }, () => containers.removeOrphans(owned(stores))),
    loop({ name: "procfs", everyMs: PROCFS_EVERY_MS, log }, async () => {
      await machine.procfs.keep(() => stores.containers.all());
    }),
    loop({ name: "removals", everyMs: RETRY_REMOVALS_MS, log }, () => disposal.retry()),
    loop({ name: "prune", everyMs: PRUNE_EVERY_MS, log }, () => {
      stores.samples.prune(now() - config.usageKeepHours * HOUR_MS);
      stores.logs.prune(now() - config.logsKeepHours * HOUR_MS);
      stores.networkLog.prune(now() - config.logsKeepHours * HOUR_MS);
      stores.executions.prune(now() - REMEMBER_MS);
    }),
  ];
  return {
    /** Docker may have made containers without an answer to the agent: the sweep looks for them now. */
    engineBack() {
      sweep.wake();
      clearTimeout(timers.again);
      timers.again = setTimeout(() => sweep.wake(), OWNERLESS_MS + 1_000).unref();
    },
    async stop() {
      clearTimeout(timers.again);
      await Promise.all(rounds.map((round) => round.stop()));
    },
  };
}

interface SweepDeps {
  readonly containers: Containers;
  readonly stores: Stores;
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Containers with a row, those that are the disks of paused sandboxes, and those that a lost database named. The source of a
 * checkpoint has a row of its own while it exists. The agent keeps no disk that such a source has left behind.
 */
export function owned({ containers, snapshots, remains }: SweepDeps["stores"]): ReadonlySet<string> {
  const disks = snapshots
    .all()
    .filter(({ kind }) => kind === "pause")
    .flatMap(({ disk: { containerId, takenFrom = containerId } }) => [containerId, takenFrom]);
  return new Set([...containers.all().map(({ id }) => id), ...disks, ...remains.held().containers]);
}

/**
 * Containers of this node without a row, for example because Docker's answer to a create was lost. One that this process has made
 * and works on stays: the copy of a large disk, or the turn of an entry of the pool, may come long before its row.
 */
export function createSweep({ containers, stores, now, log }: SweepDeps) {
  const suspects = new Map<string, number>();
  return async () => {
    const found = await containers.list();
    // Read after the list: a container that started meanwhile has its row by now, or is not in the list.
    const known = owned(stores);
    const orphans = found.map(({ id }) => id).filter((id) => !known.has(id) && !containers.isMade(id));
    for (const id of suspects.keys()) if (!orphans.includes(id)) suspects.delete(id);
    for (const containerId of orphans) {
      const since = suspects.get(containerId) ?? now();
      suspects.set(containerId, since);
      if (now() - since < OWNERLESS_MS) continue;
      log.warn({ containerId }, "removed a container without an owner");
      await containers.remove(containerId);
    }
  };
}
