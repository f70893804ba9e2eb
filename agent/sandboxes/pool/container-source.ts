/** Supplies containers for sandboxes: from the warm pool, or booted for the start. */

import { randomUUID } from "node:crypto";
import type { Log } from "../../../shared/program/log.ts";
import { createSemaphore, shareOf } from "../../../shared/program/semaphore.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import type { AgentConfig } from "../../config.ts";
import type { Envd } from "../../containers/envd.ts";
import type { Flavour, LiveContainer } from "../../containers/live-container.ts";
import type { Machine } from "../../host/machine.ts";
import type { Plan } from "../../network/addresses.ts";
import type { Slots } from "../../network/slots.ts";
import type { Stores } from "../../store/stores.ts";
import { type BootDeps, boot } from "../boot.ts";
import type { Disposal } from "../disposal.ts";
import { createPool } from "./pool.ts";
import { createProvision } from "./provision.ts";

type Config = Pick<AgentConfig, "bootConcurrency" | "bootQueueMs" | "poolReservedMb">;

interface ContainerSourceDeps extends Omit<BootDeps, "slots" | "store" | "resolver" | "envd"> {
  readonly plan: Plan;
  readonly envd: Envd;
  readonly machine: Pick<Machine, "freeMemory">;
  readonly log: Log;
}

/** Undefined: an ordinary container. */
type MakePooled = (flavour: Flavour, signal: AbortSignal) => Promise<LiveContainer> | undefined;

interface ContainerSources {
  readonly stores: Pick<Stores, "containers">;
  readonly slots: Slots;
  readonly disposal: Pick<Disposal, "kill" | "remove">;
  /** Pool entries that an earlier agent process left. */
  readonly found: { readonly pooled: readonly LiveContainer[] };
}

export function startContainerSource(
  config: Config,
  deps: ContainerSourceDeps,
  base: ContainerSources,
  teardown: Teardown,
) {
  const { plan, envd, runtime, machine, now, log } = deps;
  const { stores, slots, disposal, found } = base;
  const bootDeps = { ...deps, slots, store: stores.containers, resolver: plan.gateway };
  const semaphore = createSemaphore(config.bootConcurrency, shareOf(config.bootConcurrency));
  const foreground = { last: 0 };
  const state = { copy: (() => undefined) as MakePooled };
  const pool = createPool({
    boot: (flavour, signal) =>
      state.copy(flavour, signal) ??
      boot({ ...flavour, name: `svc-pool-${randomUUID().slice(0, 8)}` }, bootDeps, signal),
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
  const provision = createProvision({
    boot: (spec, signal) => boot(spec, bootDeps, signal),
    queueMs: config.bootQueueMs,
    pool,
    semaphore,
    runtime,
  });
  return {
    pool,
    semaphore,
    /** Lets `copy` make pool entries as copies of a template's memory instead of booting them. */
    makePooled(copy: MakePooled) {
      state.copy = copy;
    },
    /** Boots a container without an owner. */
    boot: async (spec: Parameters<typeof boot>[0], signal: AbortSignal) => {
      const giveBack = await semaphore.take(signal);
      try {
        return await boot(spec, bootDeps, signal);
      } finally {
        giveBack();
      }
    },
    provision: (...request: Parameters<typeof provision>) => {
      foreground.last = now();
      return provision(...request);
    },
  };
}
