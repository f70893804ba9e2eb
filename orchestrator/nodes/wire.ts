/** Constructs the registry of nodes, the choice of what they keep warm, and the routes to the sandboxes that run there. */

import type { Base } from "../base/base.ts";
import type { Build } from "../store/builds/record.ts";
import type { Lineage } from "../store/lineage.ts";
import type { Store } from "../store/store.ts";
import { followHolds } from "./follow-holds.ts";
import { followRoutes } from "./follow-routes.ts";
import { hearOthers } from "./hear-others.ts";
import { createNodes, type NodesDeps } from "./nodes.ts";
import { createPools } from "./pools/pool-targets.ts";
import { rememberDemand, shareDemand } from "./pools/shared-demand.ts";
import { followWishes } from "./pools/wishes.ts";
import { createRoutingTable } from "./routing-table.ts";
import { createStartTurns } from "./start-turns.ts";
import { shareStarts } from "./telling/starts.ts";
import { createStatusEvents } from "./telling/status-events.ts";

interface StartNodesDeps {
  readonly store: Store;
  readonly lineage: Lineage;
  /** The build of the base template. */
  readonly template: Build;
  readonly meeting: NodesDeps["meeting"];
}

/** Resolves when the routing table holds every running sandbox. */
export async function startNodes(base: Base, { store, lineage, template, meeting }: StartNodesDeps) {
  const { config, now, log, machineId, teardown, seeds, nodeKeys, feed, background, alone } = base;
  const { nodeTimeoutMs, nodeLostMs, poolSize, platformPoolSize, poolCeiling } = config;
  const known = { store: store.nodes, lineage, now, log, nodeKeys, background, alone };
  const onStatus = createStatusEvents({ store: store.nodeEvents, background });
  const nodes = await createNodes({ ...known, meeting, nodeTimeoutMs, nodeLostMs, machineId, onStatus });
  teardown.add("node connections", () => nodes.stop());
  const startsTold = alone ? undefined : shareStarts({ nodes, store: store.nodeStarts, log });
  if (startsTold !== undefined) teardown.add("starts on nodes", () => startsTold.stop());
  const own = createPools({
    base: template,
    platform: await store.templates.promotedBuilds(),
    baseSize: poolSize,
    keptSize: platformPoolSize,
    ceiling: poolCeiling,
    now,
  });
  if (alone) await rememberDemand({ own, store, now });
  const shared = alone ? undefined : shareDemand({ own, store, feed, background, now, log });
  if (shared !== undefined) teardown.add("starts of sandboxes", () => shared.stop());
  const wishes = await followWishes({ pools: own, templates: store.templates, log });
  teardown.add("wishes for warm pools", () => wishes.stop());
  const routes = createRoutingTable({ seeds, place: (id) => nodes.place(id) });
  for (const record of await store.sandboxes.routable()) routes.add(record);
  followRoutes({ feed, routes, store: store.sandboxes });
  await followHolds({ feed, routes, held: store.held });
  const hearing = hearOthers({ nodes, routes, feed, alone, log });
  teardown.add("reports of nodes", () => hearing.stop());
  return { nodes, turns: createStartTurns(nodes), pools: shared?.pools ?? own, routes, hearing };
}
