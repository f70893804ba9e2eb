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
import { type AbandonedDeps, finishAbandoned, SNAPSHOT_LEFT_MS, startHousekeeping } from "./housekeeping.ts";
import { createNodeStoreHandlers } from "./store-handlers.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

interface RepairsDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly lineage: Lineage;
  readonly pools: Pools;
  readonly routes: RoutingTable;
  readonly spawns: Spawns;
  readonly metrics: Metrics;
  readonly meter: Meter;
}

interface Abandoned extends Pick<RepairsDeps, "store" | "nodes" | "lifecycle"> {
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
}

/** Finishes the work that was under way at an orchestrator which has ended: the former process of a SQLite file is one. */
export async function finishAbandonedWork(base: Base, deps: Abandoned): Promise<void> {
  await deps.store.sandboxes.abandonAll();
  base.background.run("finish abandoned transitions", async () => {
    await finishAbandoned(abandonedOf(base, deps));
    // Another orchestrator may be about to begin the snapshot.
    const empty = base.now() - (deps.alone ? 0 : SNAPSHOT_LEFT_MS);
    await deps.lifecycle.checkpointing.sweep(base.now(), empty);
  });
}

/** Starts the periodic repairs; returns the handlers of the nodes' reports, which make the other repairs. */
export function startRepairs(base: Base, deps: RepairsDeps) {
  const { config, now, log, teardown, rounds } = base;
  const { store, nodes, lineage, pools, routes, spawns, metrics, meter } = deps;
  const { pausing, ending, holding } = deps.lifecycle;
  const housekeeping = startHousekeeping({
    abandoned: abandonedOf(base, deps),
    spawns,
    rounds,
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
      store,
      nodes,
      lineage,
      routes,
      pools,
      pausing,
      ending,
      holding,
      meter,
      givenUp: createGivenUp({ store, log }),
      grace: { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs },
      now,
      log,
      observe: (kind, count) => metrics.repaired(kind, count),
    }),
  };
}

function abandonedOf({ now, log }: Base, { store, nodes, lifecycle }: Omit<Abandoned, "alone">): AbandonedDeps {
  const { ending, pausing, resuming, checkpointing, networks } = lifecycle;
  return { store, nodes, ending, pausing, resuming, checkpointing, networks, now, log };
}
