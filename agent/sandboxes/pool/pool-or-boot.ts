/** The sources of containers without an owner: the pool, and a boot in its turn, which the pool may overtake. */

import type { StartRequest } from "../../../shared/agent-api/routes.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { LaunchSpec } from "../become-sandbox.ts";
import type { BootSpec } from "../boot.ts";
import type { Sources } from "../start.ts";
import { type ClaimDeps, claim, type Unclaimed } from "./claim.ts";
import type { Pool } from "./pool.ts";
import type { Turns } from "./turns.ts";

export interface PoolSourcesDeps extends ClaimDeps {
  readonly pool: Pool;
  readonly boot: (spec: BootSpec, signal: AbortSignal) => Promise<LiveContainer>;
  readonly turns: Turns;
  /** Called when a start looks for a container that was booted. */
  readonly onStart: () => void;
}

export function createPoolSources(deps: PoolSourcesDeps): Pick<Sources, "pool" | "boot" | "pooledMemory"> {
  const { pool, boot, docker, turns, onStart, log } = deps;

  const flavourOf = async ({ build, resources }: StartRequest) => ({
    build,
    resources,
    runtime: (await docker.runtime()).directory,
  });

  /** Undefined when it was from the pool and is not usable. */
  const tryClaim = async (spec: LaunchSpec, unclaimed: Unclaimed, next: string, signal: AbortSignal) => {
    try {
      return await claim(spec, unclaimed, deps, signal);
    } catch (error) {
      if (!unclaimed.warm || signal.aborted) throw error;
      log.warn({ err: error, containerId: unclaimed.container.id }, `pooled container is not usable, ${next}`);
      return undefined;
    }
  };

  const bootInTurn = async ({ executionId, body, timing }: LaunchSpec, signal: AbortSignal): Promise<Unclaimed> => {
    const flavour = await flavourOf(body);
    // Containers of the pool run already, and volumes are mounted before the first process.
    const waits = !hasVolumes(body);
    const ready = waits ? pool.take(flavour) : undefined;
    if (ready !== undefined) return { container: ready, warm: true, restored: "nothing" };
    const over = new AbortController();
    const queue = AbortSignal.any([signal, over.signal]);
    const release = turns.take({ owner: body.projectId, executionId }, queue);
    const spare = waits ? pool.next(flavour, queue) : never;
    const first = await timing
      .measure("wait", () => Promise.race([release, spare]))
      // Also where the node had no turn for it: then the pool must not wait for it either.
      .finally(() => over.abort());
    if (typeof first !== "function") {
      turns.forget(executionId);
      // If this start got its turn at the same moment, it passes the turn on.
      release.then((giveBack) => giveBack(), ignore);
      return { container: first, warm: true, restored: "nothing" };
    }
    spare.then((container) => pool.adopt(container), ignore);
    try {
      const { build, resources, sandboxId, volumes } = body;
      const spec = { name: `svc-${sandboxId}`, build, resources, volumes };
      const container = await timing.measure("boot", () => boot(spec, signal));
      return { container, warm: false, restored: "nothing" };
    } finally {
      first();
    }
  };

  return {
    async pool(spec, signal) {
      const { body } = spec;
      if (hasVolumes(body)) return undefined;
      const flavour = await flavourOf(body);
      for (;;) {
        onStart();
        const container = pool.take(flavour);
        if (container === undefined) return undefined;
        const unclaimed = { container, warm: true, restored: "nothing" as const };
        const launched = await tryClaim(spec, unclaimed, "trying the next one", signal);
        if (launched !== undefined) return launched;
      }
    },
    async boot(spec, signal) {
      onStart();
      return tryClaim(spec, await bootInTurn(spec, signal), "trying the next one", signal);
    },
    async pooledMemory(spec, signal) {
      const container = pool.take(await flavourOf(spec.body));
      if (container === undefined) return undefined;
      return tryClaim(spec, { container, warm: true, restored: "memory" }, "making a new copy", signal);
    },
  };
}

const never = new Promise<never>(() => undefined);

function hasVolumes({ volumes = [] }: StartRequest): boolean {
  return volumes.length > 0;
}

function ignore(): void {
  // The other source was first.
}
