/** Gets a container for a start: from the pool if one fits, else by a boot, whichever is ready first. */

import type { StartRequest } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { anySignal } from "../../../shared/program/any-signal.ts";
import type { Semaphore } from "../../../shared/program/semaphore.ts";
import type { Flavour, LiveContainer } from "../../containers/live-container.ts";
import type { BootSpec } from "../boot.ts";
import type { Provision, Provisioned } from "../launch.ts";
import type { Pool } from "./pool.ts";

export interface ProvisionDeps {
  readonly pool: Pick<Pool, "take" | "next" | "adopt">;
  readonly boot: (spec: BootSpec, signal: AbortSignal) => Promise<LiveContainer>;
  readonly runtime: () => Promise<{ readonly directory: string }>;
  /** Cold starts at the same time: more would only slow each of them. */
  readonly semaphore: Semaphore;
  /** A start that waited this long for its permit is refused. */
  readonly queueMs: number;
}

export function createProvision({ pool, boot, runtime, semaphore, queueMs }: ProvisionDeps): Provision {
  const cold = async (body: StartRequest, flavour: Flavour, signal: AbortSignal): Promise<Provisioned> => {
    const over = new AbortController();
    const limit = AbortSignal.timeout(queueMs);
    const queue = anySignal(signal, limit, over.signal);
    const release = semaphore.take(queue);
    // Containers of the pool run already, and volumes are mounted before the first process.
    const spare = hasVolumes(body) ? never : pool.next(flavour, queue);
    const first = await Promise.race([release, spare]).catch((error: unknown) => {
      if (!limit.aborted || signal.aborted) throw error;
      throw new AppError(
        "node_busy",
        `the node starts other sandboxes and had no turn for this one within ${queueMs} ms: try again`,
      );
    });
    over.abort();
    if (typeof first !== "function") {
      // If this start got a permit at the same moment, it passes the permit on.
      release.then((giveBack) => giveBack(), ignore);
      return { container: first, warm: true };
    }
    spare.then((container) => pool.adopt(container), ignore);
    try {
      const { build, resources, sandboxId, volumes } = body;
      return { container: await boot({ name: `svc-${sandboxId}`, build, resources, volumes }, signal), warm: false };
    } finally {
      first();
    }
  };

  return async (body, signal) => {
    const flavour = { build: body.build, resources: body.resources, runtime: (await runtime()).directory };
    const container = hasVolumes(body) ? undefined : pool.take(flavour);
    return container === undefined ? cold(body, flavour, signal) : { container, warm: true };
  };
}

const never = new Promise<never>(() => undefined);

function hasVolumes({ volumes = [] }: StartRequest): boolean {
  return volumes.length > 0;
}

function ignore(): void {
  // The other source was first.
}
