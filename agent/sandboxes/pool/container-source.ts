/** Constructs the pool, and the sources of containers without an owner. */

import { randomUUID } from "node:crypto";
import type { Log } from "../../../shared/program/log.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import type { AgentConfig } from "../../config.ts";
import type { Flavour, LiveContainer } from "../../containers/live-container.ts";
import type { Gate } from "../../network/gate.ts";
import type { Slots } from "../../network/slots.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";
import { boot } from "../boot.ts";
import type { Disposal } from "../disposal.ts";
import type { SandboxMachine } from "../machine.ts";
import { templateMemory } from "../start.ts";
import { createPool } from "./pool.ts";
import { createPoolSources } from "./pool-or-boot.ts";
import type { Turns } from "./turns.ts";

export interface ContainerSourceDeps {
  readonly config: AgentConfig;
  readonly machine: SandboxMachine;
  readonly stores: Stores;
  readonly slots: Slots;
  readonly gate: Gate;
  readonly disposal: Disposal;
  readonly turns: Turns;
  /** Makes a pool entry as a copy of a template's memory. */
  readonly copy: (flavour: Flavour, memory: Snapshot, signal: AbortSignal) => Promise<LiveContainer>;
  /** Pool entries that an earlier agent process left. */
  readonly pooled: readonly LiveContainer[];
  readonly now: () => number;
  readonly log: Log;
}

export function createContainerSource(deps: ContainerSourceDeps, teardown: Teardown) {
  const { config, machine, stores, slots, gate, disposal, turns, now, log } = deps;
  const bootDeps = { ...machine, stores, slots, now, log };
  const foreground = { last: 0 };
  const { memoryTotalBytes, cpuCount } = machine.host.load();
  const pool = createPool({
    boot(flavour, signal) {
      const memory = templateMemory(flavour.build.buildId, stores);
      return memory === undefined
        ? boot({ ...flavour, name: `svc-pool-${randomUUID().slice(0, 8)}` }, bootDeps, signal)
        : deps.copy(flavour, memory, signal);
    },
    dispose: async (container: LiveContainer) => {
      await disposal.kill(container);
      disposal.remove(container);
    },
    lastForeground: () => (turns.busy > 0 ? Number.POSITIVE_INFINITY : foreground.last),
    freeMemory: () => machine.host.freeMemory(),
    reservedMemory: config.poolReservedMb * 1024 * 1024,
    memoryBound: (memoryTotalBytes * config.poolMemoryPercent) / 100,
    atOnce: refillsAtOnce(cpuCount, config.bootConcurrency),
    docker: machine.docker,
    now,
    log,
  });
  teardown.add("pool", () => pool.stop());
  for (const container of deps.pooled) pool.adopt(container);
  const sources = createPoolSources({
    ...machine,
    stores,
    gate,
    disposal,
    boot: (spec, signal) => boot(spec, bootDeps, signal),
    pool,
    turns,
    onStart: () => (foreground.last = now()),
    now,
    log,
  });
  return {
    pool,
    sources,
    /** Boots a container without an owner. */
    boot: async (spec: Parameters<typeof boot>[0], signal: AbortSignal) => {
      const giveBack = await turns.take({ owner: undefined }, signal);
      try {
        return await boot(spec, bootDeps, signal);
      } finally {
        giveBack();
      }
    },
  };
}

/** Half of the processors stay for sandboxes. More than four starts at once wait for the Docker daemon. */
function refillsAtOnce(cpuCount: number, bootConcurrency: number): number {
  return Math.max(1, Math.min(4, bootConcurrency, Math.floor(cpuCount / 2)));
}
