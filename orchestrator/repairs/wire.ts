/** Finishes what a former process left, and constructs the repairs of nodes and sandboxes. */

import type { Base } from "../base/base.ts";
import type { Spawns } from "../templates/usage.ts";
import { createAdoption } from "./adoption.ts";
import { createGivenUp } from "./given-up.ts";
import { createReportHandlers, type ReportParts } from "./heartbeat.ts";
import { finishAbandoned, startHousekeeping } from "./housekeeping.ts";
import { createNodeRemoval } from "./node-removal.ts";
import { createNodeStoreHandlers } from "./store-handlers.ts";

interface RepairsDeps extends ReportParts {
  readonly spawns: Spawns;
}

/** One process owns the database: work that was under way when it opened has been abandoned, and is finished now. */
export async function finishAbandonedWork(
  base: Base,
  { store, nodes, lifecycle }: Pick<ReportParts, "store" | "nodes" | "lifecycle">,
): Promise<void> {
  const { background, now, log } = base;
  await store.sandboxes.abandonAll();
  background.run("finish abandoned transitions", async () => {
    await finishAbandoned({ store, nodes, lifecycle, now, log });
    await lifecycle.checkpointing.sweep(now());
  });
}

/** Starts the periodic repairs; returns the handlers of the nodes' reports, which make the other repairs. */
export function startRepairs(base: Base, deps: RepairsDeps) {
  const { config, now, log, teardown } = base;
  const { store, nodes, lineage, lifecycle, routes, spawns } = deps;
  const abandoned = { store, nodes, lifecycle, now, log };
  const housekeeping = startHousekeeping({ abandoned, spawns, config });
  teardown.add("housekeeping", () => housekeeping.stop());
  const adoption = createAdoption({ store, nodes, lineage, routes, now, log });
  const grace = { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs };
  const { ending } = lifecycle;
  const removal = createNodeRemoval({ store, nodes, ending, nodeTimeoutMs: config.nodeTimeoutMs, now, log });
  return {
    removal,
    nodeStores: createNodeStoreHandlers({ adoption, nodes }),
    reports: createReportHandlers({ parts: deps, givenUp: createGivenUp({ store, log }), grace, now, log }),
  };
}
