/** Constructs the live set with what measures and removes its containers, then the pool and the starts and stops that change it. */

import { createSemaphore, type Semaphore, shareOf } from "../../shared/program/semaphore.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { startCommand } from "../builds/start-command.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import type { LimitWatch } from "../host/limit-watch.ts";
import type { Gate } from "../network/gate.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { Slots } from "../network/slots.ts";
import type { DiskReserve } from "../node-disk/reserve.ts";
import type { NodeProxy } from "../proxy/node-proxy.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import { createDisposal, type Disposal } from "../sandboxes/disposal.ts";
import { createLiveSet, type LiveSet } from "../sandboxes/live-set.ts";
import { startSandboxLogs } from "../sandboxes/logs.ts";
import { createMemoryKills, type MemoryKills } from "../sandboxes/memory-kills.ts";
import { createContainerSource } from "../sandboxes/pool/container-source.ts";
import { createReplaceEgress } from "../sandboxes/replace-egress.ts";
import { createSandboxes } from "../sandboxes/sandboxes.ts";
import { createStart } from "../sandboxes/start.ts";
import { createUsageSampling, type UsageSampling } from "../sandboxes/usage.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";
import type { Stores } from "../store/stores.ts";
import type { Events } from "./events.ts";

interface Base {
  readonly stores: Stores;
  readonly found: RecoveryResult;
  readonly slots: Slots;
  readonly gate: Gate;
}

/** The live set holds the sandboxes that an earlier agent process left running. */
export function createLiveParts(config: AgentConfig, deps: AgentDeps, base: Base, teardown: Teardown) {
  const { now, log } = deps;
  const { stores, found } = base;
  const disposal = createDisposal({ ...deps, ...base, store: stores.containers });
  teardown.add("removals", () => disposal.settled());
  const live = createLiveSet();
  for (const sandbox of found.sandboxes) live.add(sandbox);
  const { running } = live;
  const memoryKills = createMemoryKills({ since: now(), log });
  const { usageEveryMs: everyMs, bootConcurrency } = config;
  const usage = createUsageSampling({ ...deps, store: stores.samples, everyMs, running, memoryKills });
  teardown.add("usage samples", () => usage.stop());
  return { disposal, live, memoryKills, usage, semaphore: createSemaphore(bootConcurrency, shareOf(bootConcurrency)) };
}

interface SandboxSources extends Base {
  readonly events: Events;
  readonly disposal: Disposal;
  readonly live: LiveSet;
  readonly memoryKills: MemoryKills;
  readonly usage: UsageSampling;
  readonly semaphore: Semaphore;
  readonly stored: Pick<SnapshotParts, "sources" | "mutex" | "copy" | "rescue">;
  readonly proxy: NodeProxy;
  readonly disk: DiskReserve;
  readonly limits: LimitWatch;
  readonly reach: Reach;
}

export function createSandboxParts(config: AgentConfig, deps: AgentDeps, base: SandboxSources, teardown: Teardown) {
  const { stores, events, disposal, live, memoryKills, usage, stored, proxy, disk, limits, reach } = base;
  const source = createContainerSource(config, deps, { ...base, copy: stored.copy }, teardown);
  const logs = startSandboxLogs({ ...deps, store: stores.logs, running: live.running });
  teardown.add("logs", () => logs.stop());
  const sandboxes = createSandboxes({
    ...deps,
    live,
    start: createStart({
      sources: { ...source.sources, ...stored.sources },
      mutex: stored.mutex,
      stores,
      startCommand: startCommand({ ...deps, store: stores.builds }),
    }),
    store: stores.executions,
    recordOf: (snapshotId) => stores.snapshots.get(snapshotId)?.record,
    closeStreams: (executionId) => proxy.close(executionId),
    beforeEnd: (sandbox) => {
      memoryKills.look(sandbox);
      return logs.last(sandbox);
    },
    rescue: stored.rescue,
    onStart: (sandbox) => usage.started(sandbox),
    onChange: () => {
      events.emit("sandboxes");
      events.emit("changed");
    },
    onExit: (reason, sandbox) => {
      if (reason === "out_of_memory") logs.outOfMemory(sandbox);
      events.emit("exited", reason);
    },
    maxSandboxes: config.maxSandboxes,
    refusal: ({ egress }) => disk.refusal() ?? limits.refusal() ?? reach.refusal(egress),
    startLimitMs: config.startLimitMs,
    disposal,
  });
  const { pool, boot } = source;
  return { pool, boot, logs, sandboxes, replaceEgress: createReplaceEgress({ ...deps, ...base }) };
}
