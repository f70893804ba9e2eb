/** Pool entries of templates with memory: what the pool makes of such a template, and which starts may use it. */

import type { Log } from "../../shared/program/log.ts";
import type { Flavour, LiveContainer } from "../containers/live-container.ts";
import { claim, type LaunchDeps, type Launched, type LaunchSpec } from "../sandboxes/launch.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { Snapshot } from "../store/snapshots.ts";
import type { Stores } from "../store/stores.ts";

export interface PooledTemplatesDeps extends Omit<LaunchDeps, "store"> {
  readonly stores: Pick<Stores, "builds" | "snapshots" | "executions">;
  readonly pool: Pick<Pool, "take">;
  readonly runtime: () => Promise<{ readonly directory: string }>;
  readonly copy: (flavour: Flavour, snapshot: Snapshot, signal: AbortSignal) => Promise<LiveContainer>;
  readonly log: Log;
}

export interface PooledTemplates {
  /** Undefined for a template without memory: its containers are booted. */
  make(flavour: Flavour, signal: AbortSignal): Promise<LiveContainer> | undefined;
  /** Undefined when the start is of another kind, the pool has no entry, or its entry is unusable. */
  launch(spec: LaunchSpec, signal: AbortSignal): Promise<Launched | undefined>;
}

export function pooledTemplates(deps: PooledTemplatesDeps): PooledTemplates {
  const { stores, pool, runtime, copy, log } = deps;
  const snapshotOf = (buildId: string): Snapshot | undefined => {
    const made = stores.builds.get(buildId)?.result?.snapshot;
    const snapshot = made === undefined ? undefined : stores.snapshots.get(made.snapshotId);
    return snapshot?.memory === true && snapshot.state === "stored" ? snapshot : undefined;
  };
  return {
    make(flavour, signal) {
      const snapshot = snapshotOf(flavour.build.buildId);
      return snapshot === undefined ? undefined : copy(flavour, snapshot, signal);
    },
    async launch(spec, signal) {
      const { build, resources, origin } = spec.body;
      if (origin?.is !== "snapshot" || !origin.memory || snapshotOf(build.buildId)?.id !== origin.snapshotId)
        return undefined;
      const container = pool.take({ build, resources, runtime: (await runtime()).directory });
      if (container === undefined) return undefined;
      try {
        const launched = await claim(spec, { container, warm: true }, { ...deps, store: stores.executions }, signal);
        return { ...launched, restored: "memory" };
      } catch (error) {
        if (signal.aborted) throw error;
        log.warn({ err: error, containerId: container.id }, "pooled container is not usable, making a new copy");
        return undefined;
      }
    },
  };
}
