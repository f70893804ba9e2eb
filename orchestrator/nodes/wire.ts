/** Constructs the registry of nodes, and later, when the sandboxes' parts exist, the repairs of nodes and sandboxes. */

import type { Metrics } from "../api/prometheus.ts";
import type { Base } from "../app-parts.ts";
import type { NetworkUpdating } from "../network/updating.ts";
import type { RoutingTable } from "../routing-table.ts";
import type { Sandboxes } from "../sandboxes/wire.ts";
import type { Build } from "../store/builds/record.ts";
import type { Lineage } from "../store/lineage.ts";
import type { Store } from "../store/store.ts";
import type { Spawns } from "../templates/usage.ts";
import type { Meter } from "../usage/meter.ts";
import { createAdoption } from "./adoption.ts";
import { createGivenUp } from "./given-up.ts";
import { createReportHandlers } from "./heartbeat.ts";
import { finishAbandoned, startHousekeeping } from "./housekeeping.ts";
import { type Nodes, openNodes } from "./nodes.ts";
import { createPools, type Pools } from "./warm-pools.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

interface StartNodesDeps {
  readonly store: Store;
  readonly lineage: Lineage;
  /** The build of the base template. */
  readonly template: Build;
}

export async function startNodes(base: Base, { store, lineage, template }: StartNodesDeps) {
  const { config, now, log, machineId, teardown, nodeKeys } = base;
  const { nodeTimeoutMs, poolSize, platformPoolSize, poolCeiling } = config;
  const nodes = await openNodes({ store: store.nodes, lineage, now, log, nodeKeys, nodeTimeoutMs, machineId });
  teardown.add("node connections", () => nodes.stop());
  const pools = createPools({
    base: template,
    baseSize: poolSize,
    keptSize: platformPoolSize,
    ceiling: poolCeiling,
    now,
  });
  for (const build of await store.templates.promotedBuilds()) pools.keep(build);
  return {
    nodes,
    pools,
    finishAbandonedWork: (parts: RepairedParts) => finishAbandonedWork(base, { ...parts, store, nodes }),
    startRepairs: (parts: RepairSources) => startRepairs(base, { ...parts, store, lineage, nodes, pools }),
  };
}

interface RepairedParts {
  readonly sandboxes: Sandboxes;
  readonly networks: NetworkUpdating;
}

interface RepairSources extends RepairedParts {
  readonly routes: RoutingTable;
  readonly spawns: Spawns;
  readonly metrics: Metrics;
  readonly meter: Meter;
}

interface NodeParts {
  readonly store: Store;
  readonly nodes: Nodes;
}

/** One process owns the database: work that was under way when it opened has been abandoned, and is finished now. */
async function finishAbandonedWork(
  { background, now, log }: Base,
  { store, nodes, sandboxes, networks }: RepairedParts & NodeParts,
): Promise<void> {
  await store.sandboxes.abandonAll();
  background.run("finish abandoned transitions", async () => {
    await finishAbandoned({ ...sandboxes, store, nodes, networks, now, log });
    await sandboxes.checkpointing.sweep(now());
  });
}

interface StartRepairsDeps extends RepairSources, NodeParts {
  readonly lineage: Lineage;
  readonly pools: Pools;
}

/** Starts the periodic repairs; returns the handlers of the nodes' reports, which make the other repairs. */
function startRepairs({ config, now, log, teardown }: Base, parts: StartRepairsDeps) {
  const { store, sandboxes } = parts;
  const housekeeping = startHousekeeping({
    ...sandboxes,
    ...parts,
    now,
    log,
    everyMs: config.reconcileEveryMs,
    nodeLostMs: config.nodeLostMs,
    endedMs: config.endedSandboxKeepHours * HOUR_MS,
    historyMs: config.historyDays * DAY_MS,
  });
  teardown.add("housekeeping", () => housekeeping.stop());
  const adoption = createAdoption({
    store,
    nodes: parts.nodes,
    lineage: parts.lineage,
    routes: parts.routes,
    now,
    log,
  });
  const reports = createReportHandlers({
    ...sandboxes,
    ...parts,
    store: store.sandboxes,
    pausedSandboxes: store.pausedSandboxes,
    storage: store.storage,
    givenUp: createGivenUp({ store, log }),
    grace: { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs },
    now,
    log,
    observe: (kind, count) => parts.metrics.repaired(kind, count),
  });
  return { reports, adoption };
}
