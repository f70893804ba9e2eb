/** Carries out the recovery plan. Firewall first: nothing that runs is without its rules, not even while this works. */

import type { Log } from "../shared/log.ts";
import type { OpenCgroup } from "./cgroup.ts";
import type { Containers } from "./containers.ts";
import type { LiveContainer } from "./live-container.ts";
import type { Marks } from "./marks.ts";
import type { Plan } from "./network/addresses.ts";
import type { Firewall } from "./network/firewall.ts";
import type { Links } from "./network/links.ts";
import { planRecovery } from "./recover.ts";
import type { Sandbox } from "./sandboxes.ts";
import type { ContainerStore, KnownContainer } from "./store/containers.ts";
import type { ExecutionStore } from "./store/executions.ts";

export interface RecoveryDeps {
  readonly plan: Plan;
  readonly containers: Pick<Containers, "list" | "remove" | "inspect" | "rename">;
  readonly openCgroup: OpenCgroup;
  readonly links: Links;
  readonly firewall: Pick<Firewall, "rebuild">;
  readonly marks: Pick<Marks, "list" | "remove">;
  readonly containerStore: ContainerStore;
  readonly executionStore: ExecutionStore;
  readonly runtime: () => Promise<{ readonly directory: string }>;
  readonly now: () => number;
  readonly log: Log;
}

export interface Recovered {
  readonly sandboxes: readonly Sandbox[];
  readonly pooled: readonly LiveContainer[];
  /** Slots that nobody owns; free once `cleared`. */
  readonly leftoverSlots: readonly number[];
  /** What is no longer wanted, removed in the background: nobody waits for it. */
  readonly cleared: Promise<void>;
}

export async function recover(deps: RecoveryDeps): Promise<Recovered> {
  const { plan, containers, links, firewall, marks, containerStore, executionStore, now, log } = deps;
  const known = containerStore.all();
  const executions = executionStore.all();
  const open = new Set(executions.filter(({ running, internet }) => running && internet).map((one) => one.containerId));
  await links.prepare();
  await firewall.rebuild(
    known.map(({ id, slot: number }) => {
      const { link, address } = plan.slot(number);
      return { link, address, open: open.has(id) };
    }),
  );

  const [found, slots, marked, runtime] = await Promise.all([
    containers.list(),
    links.list(),
    marks.list(),
    deps.runtime().catch(() => ({ directory: "" })),
  ]);
  const cgroups = new Map(known.map((container) => [container.id, tryOpen(deps.openCgroup, container)]));
  const steps = planRecovery({
    known,
    executions,
    found,
    slots,
    marks: marked,
    runtime: runtime.directory,
    alive: ({ id }) => cgroups.get(id)?.alive() === true,
  });

  const live = (container: KnownContainer): LiveContainer => {
    const cgroup = cgroups.get(container.id);
    if (cgroup === undefined) throw new Error("planned to keep a container that is not alive");
    return { ...container, slot: plan.slot(container.slot), cgroup };
  };
  for (const { id, sandboxId, containerId } of steps.ended) {
    const seen = await containers.inspect(containerId);
    const reason = seen === undefined ? "lost" : seen.oomKilled ? "oom" : "exited";
    const exitCode = seen === undefined ? {} : { exitCode: seen.exitCode };
    executionStore.exit({ executionId: id, sandboxId, reason, ...exitCode, at: now() });
  }
  for (const { id } of steps.unstarted) executionStore.remove(id);

  const clear = async () => {
    for (const { id, name } of steps.rename)
      await containers.rename(id, name).catch((error: unknown) => log.debug({ err: error }, "not renamed"));
    for (const id of steps.removeContainers) await containers.remove(id);
    for (const id of steps.removeMarks) await marks.remove(id);
    for (const id of steps.forgetContainers) containerStore.remove(id);
  };
  const { sandboxes, pooled, ended, removeContainers } = steps;
  log.info(
    { sandboxes: sandboxes.length, pooled: pooled.length, ended: ended.length, removed: removeContainers.length },
    "took over what runs here",
  );
  return {
    sandboxes: sandboxes.map(({ container, execution }) => ({
      executionId: execution.id,
      sandboxId: execution.sandboxId,
      container: live(container),
      internet: execution.internet,
      startedAt: execution.startedAt,
      warm: execution.warm,
      endAt: execution.endAt,
    })),
    pooled: pooled.map(live),
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
