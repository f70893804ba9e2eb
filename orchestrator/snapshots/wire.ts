/** Constructs the removal of snapshots from nodes and the quota of projects, and later the end of old ones and the handlers. */

import type { Base } from "../app-parts.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Ending } from "../sandboxes/lifecycle/kill.ts";
import type { Store } from "../store/store.ts";
import type { VolumeSweep } from "../volumes/sweep.ts";
import { startStorageExpiry } from "./expiry.ts";
import { createSnapshotHandlers, type SnapshotsDeps } from "./handlers.ts";
import { createProjectQuota } from "./quota.ts";
import { createSnapshotRemover } from "./removal.ts";
import { createStorageHandlers } from "./storage-report.ts";

const HOUR_MS = 3_600_000;
const MIB = 1024 ** 2;

interface SnapshotSources {
  readonly store: Store;
  readonly nodes: Nodes;
}

export function createSnapshots(base: Base, { store, nodes }: SnapshotSources) {
  const { config, background, now, log, teardown } = base;
  const remover = createSnapshotRemover({ nodes, background, log, timeoutMs: config.stopTimeoutMs });
  const lifetimes = { pausedMs: config.pausedKeepHours * HOUR_MS, snapshotMs: config.snapshotKeepHours * HOUR_MS };
  const quotaBytes = config.projectStoredQuotaMb * MIB;
  return {
    remover,
    quota: quotaBytes === 0 ? undefined : createProjectQuota({ storage: store.storage, nodes, log, quotaBytes }),
    /** Starts the rounds that delete what is older than its lifetime. */
    startExpiry: (ending: Pick<Ending, "expirePaused">) => {
      if (lifetimes.pausedMs === 0 && lifetimes.snapshotMs === 0) return;
      const rounds = startStorageExpiry({
        store,
        ending,
        remover,
        lifetimes,
        now,
        log,
        everyMs: config.reconcileEveryMs,
      });
      teardown.add("storage expiry", () => rounds.stop());
    },
    handlers: (deps: SnapshotsDeps) => createSnapshotHandlers(deps),
    storage: (volumeProblems: VolumeSweep["problems"]) =>
      createStorageHandlers({ store, nodes, lifetimes, quotaBytes, now, volumeProblems }),
  };
}
