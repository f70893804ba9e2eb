/** Starts the end of old snapshots and paused sandboxes, and constructs the handlers of snapshots and of what is stored. */

import type { Base } from "../base/base.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import type { VolumeSweep } from "../volumes/sweep.ts";
import { createSnapshotCheckHandlers } from "./check-handlers.ts";
import { startStorageExpiry } from "./expiry.ts";
import { createSnapshotHandlers } from "./handlers.ts";
import { createStorageHandlers } from "./storage-report.ts";

const HOUR_MS = 3_600_000;
const MIB = 1024 ** 2;

interface SnapshotSources {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly names: TemplateNames;
  readonly volumeProblems: VolumeSweep["problems"];
}

export function startSnapshots(base: Base, { store, nodes, lifecycle, names, volumeProblems }: SnapshotSources) {
  const { config, now, log, teardown, rounds } = base;
  const { ending, snapshots: remover, checkpointing } = lifecycle;
  const lifetimes = { pausedMs: config.pausedKeepHours * HOUR_MS, snapshotMs: config.snapshotKeepHours * HOUR_MS };
  if (lifetimes.pausedMs > 0 || lifetimes.snapshotMs > 0) {
    const everyMs = config.reconcileEveryMs;
    const expiry = startStorageExpiry({ store, ending, remover, lifetimes, rounds, now, log, everyMs });
    teardown.add("storage expiry", () => expiry.stop());
  }
  const quotaBytes = config.projectStoredQuotaMb * MIB;
  return {
    snapshots: createSnapshotHandlers({ store, nodes, names, checkpointing }),
    snapshotChecks: createSnapshotCheckHandlers({ store, nodes }),
    storage: createStorageHandlers({ store, nodes, lifetimes, quotaBytes, now, volumeProblems }),
  };
}
