/** Finishes what a former process left, and constructs the repairs of nodes and sandboxes. */

import type { Base } from "../base/base.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { Pools } from "../nodes/warm-pools.ts";
import type { Lineage } from "../store/lineage.ts";
import type { Store } from "../store/store.ts";
import type { Spawns } from "../templates/usage.ts";
import type { Meter } from "../usage/meter.ts";
import { createAdoption } from "./adoption.ts";
import { createGivenUp } from "./given-up.ts";
import { createReportHandlers } from "./heartbeat.ts";
import { finishAbandoned, startHousekeeping } from "./housekeeping.ts";
import { createNodeStoreHandlers } from "./store-handlers.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

interface RepairedParts {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
}

interface StartRepairsDeps extends RepairedParts {
  readonly lineage: Lineage;
  readonly pools: Pools;
  readonly routes: RoutingTable;
  readonly spawns: Spawns;
  readonly metrics: Metrics;
  readonly meter: Meter;
}

/** One process owns the database: work that was under way when it opened has been abandoned, and is finished now. */
export async function finishAbandonedWork(
  { background, now, log }: Base,
  { store, nodes, lifecycle }: RepairedParts,
): Promise<void> {
  await store.sandboxes.abandonAll();
  background.run("finish abandoned transitions", async () => {
    await finishAbandoned({ ...lifecycle, store, nodes, now, log });
    await lifecycle.checkpointing.sweep(now());
  });
}

/** Starts the periodic repairs; returns the handlers of the nodes' reports, which make the other repairs. */
export function startRepairs({ config, now, log, teardown }: Base, { lifecycle, ...parts }: StartRepairsDeps) {
  const { store, nodes, lineage, routes } = parts;
  const housekeeping = startHousekeeping({
    ...lifecycle,
    ...parts,
    now,
    log,
    everyMs: config.reconcileEveryMs,
    nodeLostMs: config.nodeLostMs,
    endedMs: config.endedSandboxKeepHours * HOUR_MS,
    historyMs: config.historyDays * DAY_MS,
  });
  teardown.add("housekeeping", () => housekeeping.stop());
  const adoption = createAdoption({ store, nodes, lineage, routes, now, log });
  return {
    nodeStores: createNodeStoreHandlers({ adoption, nodes }),
    reports: createReportHandlers({
      ...lifecycle,
      ...parts,
      store: store.sandboxes,
      pausedSandboxes: store.pausedSandboxes,
      storage: store.storage,
      givenUp: createGivenUp({ store, log }),
      grace: { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs },
      now,
      log,
      observe: (kind, count) => parts.metrics.repaired(kind, count),
    }),
  };
}
