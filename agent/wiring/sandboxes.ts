/** Constructs the live set with what measures and removes its containers, then the pool and the starts and stops that change it. */

import { createSemaphore, shareOf } from "../../shared/program/semaphore.ts";
import { startCommand } from "../builds/start-command.ts";
import type { Lease } from "../lease/lease.ts";
import type { NodeProxy } from "../proxy/node-proxy.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import { createDisposal } from "../sandboxes/disposal.ts";
import { createLiveSet } from "../sandboxes/live-set.ts";
import { startSandboxLogs } from "../sandboxes/logs.ts";
import { createMemoryKills } from "../sandboxes/memory-kills.ts";
import { createContainerSource } from "../sandboxes/pool/container-source.ts";
import { createTurns } from "../sandboxes/pool/turns.ts";
import { createReplaceEgress } from "../sandboxes/replace-egress.ts";
import { createSandboxes } from "../sandboxes/sandboxes.ts";
import { createStart } from "../sandboxes/start.ts";
import { createUsageSampling } from "../sandboxes/usage.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";
import type { Base } from "./base.ts";
import type { NetworkParts } from "./network.ts";
import type { NodeParts } from "./node.ts";

interface Before {
  readonly found: RecoveryResult;
  readonly network: NetworkParts;
  readonly node: NodeParts;
}

export type LiveParts = ReturnType<typeof createLive>;

/** The live set holds the sandboxes that an earlier agent process left running. */
export function createLive(base: Base, { found, network }: Before) {
  const { config, machine, stores, now, log, teardown } = base;
  const disposal = createDisposal({ docker: machine.docker, slots: network.slots, gate: network.gate, stores, log });
  teardown.add("removals", () => disposal.settled());
  const set = createLiveSet();
  for (const sandbox of found.sandboxes) set.add(sandbox);
  const memoryKills = createMemoryKills({ since: now(), log });
  const usage = createUsageSampling({
    running: set.running,
    store: stores.samples,
    diskUsage: machine.disks.usage,
    memoryKills,
    traffic: machine.network.traffic,
    everyMs: config.usageEveryMs,
    now,
    log,
  });
  teardown.add("usage samples", () => usage.stop());
  const semaphore = createSemaphore(config.bootConcurrency, shareOf(config.bootConcurrency));
  const turns = createTurns({ semaphore, queueMs: config.bootQueueMs, now });
  return { set, disposal, memoryKills, usage, turns };
}

interface SandboxSources extends Before {
  readonly live: LiveParts;
  readonly lease: Pick<Lease, "refusal">;
  readonly stored: SnapshotParts;
  readonly proxy: NodeProxy;
}

export type SandboxParts = ReturnType<typeof createSandboxParts>;

export function createSandboxParts(base: Base, { found, network, node, live, lease, stored, proxy }: SandboxSources) {
  const { config, machine, stores, events, now, log, teardown } = base;
  const { docker, egress } = machine;
  const { slots, gate, reach } = network;
  const { set, disposal, turns } = live;
  const { pooled } = found;
  const source = createContainerSource(
    { config, machine, stores, slots, gate, disposal, turns, copy: stored.copy, pooled, now, log },
    teardown,
  );
  const logs = startSandboxLogs({ envd: docker.envd, store: stores.logs, running: set.running, now, log });
  teardown.add("logs", () => logs.stop());
  const sandboxes = createSandboxes({
    live: set,
    start: createStart({
      sources: { ...source.sources, ...stored.sources },
      mutex: stored.mutex,
      stores,
      startCommand: startCommand({ store: stores.builds, processes: machine.tools.processes, log }),
    }),
    disposal,
    gate,
    store: stores.executions,
    recordOf: (sandboxId) => stores.snapshots.pausedOf(sandboxId)?.record,
    closeStreams: (executionId) => proxy.close(executionId),
    beforeEnd: (sandbox) => {
      live.memoryKills.look(sandbox);
      return logs.last(sandbox);
    },
    rescue: stored.rescue,
    onStart: (sandbox) => live.usage.started(sandbox),
    onChange: () => {
      events.emit("sandboxes");
      events.emit("changed");
    },
    onExit: (reason, sandbox) => {
      if (reason === "out_of_memory") logs.outOfMemory(sandbox);
      events.emit("exited", reason);
    },
    maxSandboxes: config.maxSandboxes,
    standstill: () => lease.refusal(),
    refusal: (body) => node.disk.refusal() ?? node.limits.refusal() ?? reach.refusal(body.egress),
    startLimitMs: config.startLimitMs,
    now,
    log,
  });
  const { pool, boot } = source;
  return { pool, boot, logs, sandboxes, replaceEgress: createReplaceEgress({ docker, egress, gate, log }) };
}
