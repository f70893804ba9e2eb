/** Constructs the pool, and the sources of containers without an owner. */

import { randomUUID } from "node:crypto";
import type { Log } from "../../../shared/program/log.ts";
import type { Semaphore } from "../../../shared/program/semaphore.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import type { AgentConfig } from "../../config.ts";
import type { Envd } from "../../containers/envd.ts";
import type { Flavour, LiveContainer } from "../../containers/live-container.ts";
import type { Machine } from "../../host/machine.ts";
import type { Plan } from "../../network/addresses.ts";
import type { Slots } from "../../network/slots.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";
import { type BootDeps, boot } from "../boot.ts";
import type { Disposal } from "../disposal.ts";
import { templateMemory } from "../start.ts";
import type { ClaimDeps } from "./claim.ts";
import { createPool } from "./pool.ts";
import { createPoolSources } from "./sources.ts";

type Config = Pick<AgentConfig, "bootQueueMs" | "poolReservedMb">;

interface ContainerSourceDeps
  extends Omit<BootDeps, "slots" | "store" | "resolver" | "envd" | "containers">,
    Pick<ClaimDeps, "caFor" | "networkVariables"> {
  readonly containers: BootDeps["containers"] & ClaimDeps["containers"];
  readonly plan: Plan;
  readonly envd: Envd;
  readonly machine: Pick<Machine, "freeMemory">;
  readonly log: Log;
}

interface ContainerSources {
  readonly stores: Pick<Stores, "containers" | "executions" | "builds" | "snapshots">;
  readonly slots: Slots;
  readonly gate: ClaimDeps["gate"];
  readonly disposal: Pick<Disposal, "kill" | "remove">;
  /** Boots and restores at the same time. */
  readonly semaphore: Semaphore;
  /** Makes a pool entry as a copy of a template's memory. */
  readonly copy: (flavour: Flavour, memory: Snapshot, signal: AbortSignal) => Promise<LiveContainer>;
  /** Pool entries that an earlier agent process left. */
  readonly found: { readonly pooled: readonly LiveContainer[] };
}

export function createContainerSource(
  config: Config,
  deps: ContainerSourceDeps,
  base: ContainerSources,
  teardown: Teardown,
) {
  const { plan, envd, runtime, machine, now, log } = deps;
  const { stores, slots, disposal, semaphore, found } = base;
  const bootDeps = { ...deps, slots, store: stores.containers, resolver: plan.gateway };
  const foreground = { last: 0 };
  const pool = createPool({
    boot(flavour, signal) {
      const memory = templateMemory(flavour.build.buildId, stores);
      return memory === undefined
        ? boot({ ...flavour, name: `svc-pool-${randomUUID().slice(0, 8)}` }, bootDeps, signal)
        : base.copy(flavour, memory, signal);
    },
    dispose: async (container: LiveContainer) => {
      await disposal.kill(container);
      disposal.remove(container);
    },
    lastForeground: () => (semaphore.busy > 0 ? Number.POSITIVE_INFINITY : foreground.last),
    freeMemory: () => machine.freeMemory(),
    reservedMemory: config.poolReservedMb * 1024 * 1024,
    envd,
    runtime,
    now,
    log,
  });
  teardown.add("pool", () => pool.stop());
  for (const container of found.pooled) pool.adopt(container);
  const sources = createPoolSources({
    ...deps,
    ...base,
    boot: (spec, signal) => boot(spec, bootDeps, signal),
    queueMs: config.bootQueueMs,
    pool,
    semaphore,
    onStart: () => (foreground.last = now()),
  });
  return {
    pool,
    sources,
    /** Boots a container without an owner. */
    boot: async (spec: Parameters<typeof boot>[0], signal: AbortSignal) => {
      const giveBack = await semaphore.take(signal);
      try {
        return await boot(spec, bootDeps, signal);
      } finally {
        giveBack();
      }
    },
  };
}
