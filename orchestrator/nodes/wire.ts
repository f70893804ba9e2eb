/** Constructs the registry of nodes, and later, when the sandboxes' parts exist, the repairs of nodes and sandboxes. */

import type { Metrics } from "../api/prometheus.ts";
import type { Base } from "../app-parts.ts";
import type { NetworkUpdating } from "../network/updating.ts";
import type { RoutingTable } from "../routing-table.ts";
import type { Sandboxes } from "../sandboxes/wire.ts";
import type { Build } from "../store/builds/record.ts";
import type { Store } from "../store/store.ts";
import type { Spawns } from "../templates/usage.ts";
import { createReportHandlers } from "./heartbeat.ts";
import { finishAbandoned, startHousekeeping } from "./housekeeping.ts";
import { type Nodes, openNodes } from "./nodes.ts";
import { createPools, type Pools } from "./warm-pools.ts";

const DAY_MS = 86_400_000;

interface StartNodesDeps {
  readonly store: Store;
  /** The build of the base template. */
  readonly template: Build;
  readonly nodeToken: (nodeId: string) => string;
}

export async function startNodes(
  { config, now, log, machineId, teardown }: Base,
  { store, template, nodeToken }: StartNodesDeps,
) {
  const { nodeTimeoutMs, poolSize, poolCeiling } = config;
  const nodes = await openNodes({ store: store.nodes, now, log, nodeToken, nodeTimeoutMs, machineId });
  teardown.add("node connections", () => nodes.stop());
  return { nodes, pools: createPools({ base: template, baseSize: poolSize, ceiling: poolCeiling, now }) };
}

interface Repaired {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly sandboxes: Sandboxes;
  readonly networks: NetworkUpdating;
}

/** One process owns the database: work that was under way when it opened has been abandoned, and is finished now. */
export async function repairFormer(
  { background, now, log }: Base,
  { store, nodes, sandboxes, networks }: Repaired,
): Promise<void> {
  await store.sandboxes.abandonAll();
  background.run("finish abandoned transitions", async () => {
    await finishAbandoned({ ...sandboxes, store, nodes, networks, now, log });
    await sandboxes.checkpointing.sweep(now());
  });
}

interface StartRepairs extends Repaired {
  readonly routes: RoutingTable;
  readonly pools: Pools;
  readonly spawns: Spawns;
  readonly metrics: Metrics;
}

/** Starts the periodic repairs; returns the handlers of the nodes' reports, which make the other repairs. */
export function startRepairs({ config, now, log, teardown }: Base, parts: StartRepairs) {
  const { store, sandboxes } = parts;
  const housekeeping = startHousekeeping({
    ...sandboxes,
    ...parts,
    now,
    log,
    everyMs: config.reconcileEveryMs,
    nodeLostMs: config.nodeLostMs,
    historyMs: config.historyDays * DAY_MS,
  });
  teardown.add("housekeeping", () => housekeeping.stop());
  return createReportHandlers({
    ...sandboxes,
    ...parts,
    store: store.sandboxes,
    pausedSandboxes: store.pausedSandboxes,
    grace: { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs },
    now,
    log,
    observe: (kind, count) => parts.metrics.repaired(kind, count),
  });
}
