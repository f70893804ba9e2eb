/** Removes templates and snapshots with their builds, archives and warm containers. Callers have checked the owner. */

import type { SnapshotRemover } from "../lifecycle/snapshots/snapshot-removal.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { Store } from "../store/store.ts";

export interface TemplateRemoval {
  /** False: sandboxes that were started from it are still there. */
  removeTemplate(templateId: string): Promise<boolean>;
  /** The snapshot with all its tags. */
  removeSnapshots(templateId: string): Promise<void>;
}

export interface TemplateRemovalDeps {
  readonly store: Store;
  readonly snapshots: SnapshotRemover;
  readonly archives: { removeTemplate(templateId: string): Promise<void> };
  readonly pools: Pick<Pools, "gone">;
  readonly builds: { forget(buildIds: readonly string[]): void };
}

export function createTemplateRemoval(deps: TemplateRemovalDeps): TemplateRemoval {
  const { store } = deps;
  return {
    async removeTemplate(templateId) {
      const builds = await store.buildLeftovers.dropTemplate(templateId);
      if (builds === undefined) return false;
      const ids = builds.map(({ id }) => id);
      deps.pools.gone(ids);
      deps.builds.forget(ids);
      await deps.archives.removeTemplate(templateId);
      return true;
    },

    async removeSnapshots(templateId) {
      for (const build of await store.snapshots.dropTemplate(templateId)) {
        if (build.nodeId !== undefined) deps.snapshots.removeSoon(build.nodeId, build.id);
      }
    },
  };
}
