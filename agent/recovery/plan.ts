/** Decides at start which containers are kept, ended and removed, from the records and Docker's containers. Pure. */

import type { FoundContainer } from "../containers/containers.ts";
import type { KnownContainer } from "../store/containers.ts";
import type { Execution } from "../store/executions.ts";

export interface Remains {
  readonly known: readonly KnownContainer[];
  readonly executions: readonly Execution[];
  readonly found: readonly FoundContainer[];
  /** The recorded process is still the first process of that container. */
  readonly alive: (container: KnownContainer) => boolean;
  /** The envd runtime that new containers mount. */
  readonly runtime: string;
  /** Slots with a link or a namespace on this host. */
  readonly slots: readonly number[];
  /** Containers with annotations. */
  readonly annotations: readonly string[];
  /** Containers of paused sandboxes, with their snapshot and whether a resume with its memory has begun. */
  readonly paused: ReadonlyMap<string, { readonly snapshotId: string; readonly resuming: boolean }>;
  /** Containers that a lost database named. */
  readonly held: ReadonlySet<string>;
  /** Builds that the earlier agent process left unfinished: their containers have no owner. */
  readonly building: ReadonlySet<string>;
}

export interface RecoveryPlan {
  readonly sandboxes: readonly { readonly container: KnownContainer; readonly execution: Execution }[];
  /** Frozen, unclaimed, and of the current runtime. */
  readonly pooled: readonly KnownContainer[];
  /** Paused sandboxes whose container is still there, frozen. */
  readonly frozen: readonly {
    readonly container: KnownContainer;
    readonly snapshotId: string;
    /** Its processes may have run since their memory was stored: an interrupted resume with memory. */
    readonly ran: boolean;
  }[];
  /** Containers that are kept and run without an owner: of an interrupted resume without memory, or of a lost database. */
  readonly kill: readonly string[];
  /** Sandboxes that ended while no agent ran. */
  readonly ended: readonly Execution[];
  /** Executions whose start was never answered. */
  readonly unstarted: readonly Execution[];
  /** Containers of sandboxes that stood still while such an execution was to take their place. */
  readonly goOn: readonly string[];
  /** Containers that an earlier agent process claimed from the pool but did not rename before it ended. */
  readonly rename: readonly { readonly id: string; readonly name: string }[];
  readonly removeContainers: readonly string[];
  /** Rows whose container is gone or will be removed. */
  readonly forgetContainers: readonly string[];
  /** Also those of which only the firewall knows, because a reboot took the link and the namespace. */
  readonly removeSlots: readonly number[];
  readonly removeAnnotations: readonly string[];
}

export function planRecovery(remains: Remains): RecoveryPlan {
  const { known, executions, found, alive, runtime, slots, annotations, paused, held, building } = remains;
  const running = new Set(found.filter((container) => container.running).map(({ id }) => id));
  const byContainer = new Map(executions.map((execution) => [execution.containerId, execution]));
  const living = known.filter((container) => running.has(container.id) && alive(container));

  const sandboxes = living.flatMap((container) => {
    const execution = byContainer.get(container.id);
    return execution?.running === true ? [{ container, execution }] : [];
  });
  const idle = living.filter((container) => !byContainer.has(container.id));
  const pooled = idle.filter(
    ({ id, build, runtime: mounted }) => !paused.has(id) && mounted === runtime && !building.has(build.buildId),
  );
  const frozen = living.flatMap((container) => {
    const pause = paused.get(container.id);
    const execution = byContainer.get(container.id);
    if (pause === undefined || execution?.running === true || (execution !== undefined && !pause.resuming)) return [];
    return [{ container, snapshotId: pause.snapshotId, ran: pause.resuming }];
  });

  const claimed = [...sandboxes, ...frozen].map(({ container }) => container);
  const kept = new Map([...claimed, ...pooled].map((one) => [one.id, one]));
  const keptExecutions = new Set(sandboxes.map(({ execution }) => execution.id));
  const lost = executions.filter(({ id }) => !keptExecutions.has(id));
  const unstarted = lost.filter((execution) => !execution.running);
  const unreplaced = new Set(unstarted.map(({ sandboxId }) => sandboxId));
  const keptSlots = new Set([...kept.values()].map(({ slot }) => slot));
  return {
    sandboxes,
    pooled,
    frozen,
    kill: [...running].filter((id) => (paused.has(id) || held.has(id)) && !kept.has(id)),
    ended: lost.filter((execution) => execution.running),
    unstarted,
    goOn: sandboxes.filter(({ execution }) => unreplaced.has(execution.sandboxId)).map(({ container }) => container.id),
    rename: sandboxes
      .map(({ container, execution }) => ({ id: container.id, name: `svc-${execution.sandboxId}` }))
      .filter(({ id, name }) => found.some((one) => one.id === id && one.name !== name)),
    removeContainers: found.filter(({ id }) => !kept.has(id) && !paused.has(id) && !held.has(id)).map(({ id }) => id),
    forgetContainers: known.filter(({ id }) => !kept.has(id)).map(({ id }) => id),
    removeSlots: [...new Set([...slots, ...known.map(({ slot }) => slot)])].filter((slot) => !keptSlots.has(slot)),
    removeAnnotations: annotations.filter((id) => !kept.has(id)),
  };
}
