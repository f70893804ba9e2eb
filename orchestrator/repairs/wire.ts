/** Finishes what a former process left, and constructs the repairs of nodes and sandboxes. */

import type { DrainedState } from "../../shared/api/nodes/drains.ts";
import type { Base } from "../base/base.ts";
import type { Hearing } from "../nodes/hear-others.ts";
import type { Spawns } from "../templates/usage.ts";
import { createAdoption } from "./adoption.ts";
import { createDrainHandlers } from "./drains/drain-handlers.ts";
import { startDrains } from "./drains/drains.ts";
import { drainProgress } from "./drains/progress.ts";
import { createGivenUp } from "./given-up.ts";
import { createReportHandlers, type ReportParts } from "./heartbeat.ts";
import { finishAbandoned, SNAPSHOT_LEFT_MS, startHousekeeping } from "./housekeeping.ts";
import { createLeases } from "./leases.ts";
import { createNodeRemoval } from "./node-removal.ts";
import { createNodeStoreHandlers } from "./store-handlers.ts";

interface RepairsDeps extends ReportParts {
  readonly spawns: Spawns;
  readonly hearing: Pick<Hearing, "heardForMs">;
}

/** Finishes the work that was under way at an orchestrator which has ended: the former process of a SQLite file is one. */
export async function finishAbandonedWork(
  base: Base,
  { store, nodes, lifecycle }: Pick<ReportParts, "store" | "nodes" | "lifecycle">,
): Promise<void> {
  const { background, alone, now, log } = base;
  await store.sandboxes.abandonAll();
  background.run("finish abandoned transitions", async () => {
    await finishAbandoned({ store, nodes, lifecycle, now, log });
    // Another orchestrator may be about to begin the snapshot.
    const empty = now() - (alone ? 0 : SNAPSHOT_LEFT_MS);
    await lifecycle.checkpointing.sweep(now(), empty);
  });
}

/** Starts the periodic repairs; returns the handlers of the nodes' reports, which make the other repairs. */
export function startRepairs(base: Base, deps: RepairsDeps) {
  const { config, now, log, teardown, rounds, alone } = base;
  const { store, nodes, lineage, lifecycle, routes, spawns, hearing } = deps;
  const abandoned = { store, nodes, lifecycle, now, log };
  const housekeeping = startHousekeeping({
    abandoned,
    snapshots: lifecycle.snapshots,
    spawns,
    config,
    rounds,
    hearing,
    onLost: () => deps.metrics.nodeLost(),
  });
  teardown.add("housekeeping", () => housekeeping.stop());
  const adoption = createAdoption({ store, nodes, lineage, routes, now, log });
  const grace = { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs };
  const { nodeLoss } = lifecycle;
  const leases = createLeases({ nodes, alone, nodeLostMs: config.nodeLostMs });
  const removal = createNodeRemoval({ store, nodes, nodeLoss, nodeTimeoutMs: config.nodeTimeoutMs, now, log });
  const { background } = base;
  const { metrics } = deps;
  const onSettled = (state: DrainedState) => metrics.drained(state);
  const drains = startDrains({ store, nodes, lifecycle, rounds, background, now, log, onSettled });
  teardown.add("drains", () => drains.stop());
  return {
    removal,
    leases,
    drainProgress: () => drainProgress(store, now),
    drains: createDrainHandlers({ store, nodes, wake: () => drains.wake(), now }),
    nodeStores: createNodeStoreHandlers({ adoption, nodes }),
    reports: createReportHandlers({
      parts: deps,
      givenUp: createGivenUp({ store, log }),
      grace,
      alone,
      leases,
      now,
      log,
    }),
  };
}
