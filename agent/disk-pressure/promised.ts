/** The disks that the node has promised: of running and paused sandboxes, of builds and of volumes. The pool has promised nothing to anybody. */

import type { BuildParts } from "../builds/start-builds.ts";
import type { PromisedDisk } from "../node-disk/account.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { Stores } from "../store/stores.ts";
import type { Volumes } from "../volumes/volumes.ts";

export interface PromisedSources {
  readonly live: LiveSet;
  readonly stores: Stores;
  readonly building: BuildParts;
  readonly volumes: Volumes;
  /** Bytes of its writable layer as last measured; 0 before the first measurement. */
  readonly lastUsed: (executionId: string) => number;
}

export function promisedDisks({ live, stores, building, volumes, lastUsed }: PromisedSources): PromisedDisk[] {
  const running = [...live.running(), ...live.leaving()];
  const paused = stores.snapshots.all().filter(({ kind, state }) => kind === "pause" && state === "stored");
  const unmeasured = building.buildContainers().map(({ container }) => container);
  return [
    ...running.map(({ executionId, container: { id, resources } }) => ({
      containerId: id,
      resources,
      usedBytes: lastUsed(executionId),
    })),
    ...paused.map(({ disk: { containerId, resources }, diskBytes }) => ({
      containerId,
      resources,
      usedBytes: diskBytes,
    })),
    ...unmeasured.map(({ id, resources }) => ({ containerId: id, resources, usedBytes: 0 })),
    ...volumes.list().map(({ id, sizeMb, usedBytes }) => ({
      containerId: `volume ${id}`,
      resources: { diskSizeMB: sizeMb },
      usedBytes,
    })),
  ];
}
