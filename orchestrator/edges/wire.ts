/** Constructs what edge programs follow: the routes of this orchestrator, and the answers to what they ask. */

import type { Base } from "../base/base.ts";
import type { NodeLine } from "../edge/following/messages.ts";
import type { FindSandbox } from "../edge/sandbox-lookup.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { Store } from "../store/store.ts";
import { findSandbox } from "./find.ts";
import { createFollowers, type Followers } from "./followers.ts";

interface EdgesDeps {
  readonly nodes: Pick<Nodes, "get">;
  readonly routes: RoutingTable;
  readonly autoResuming: Lifecycle["autoResuming"];
  readonly find: FindSandbox;
  readonly docsUrl: string | undefined;
}

/** For the edge in this process and for those that follow. */
export function createFind(store: Pick<Store, "sandboxes" | "drains">, routes: RoutingTable): FindSandbox {
  return findSandbox(store, routes);
}

export function createEdges(base: Base, { nodes, routes, autoResuming, find, docsUrl }: EdgesDeps): Followers {
  const { nodeKeys, alone } = base;

  function nodeOf(nodeId: string): NodeLine | undefined {
    const facts = nodes.get(nodeId)?.facts;
    if (facts === undefined) return undefined;
    const { proxyUrl, machineId } = facts;
    return { is: "node", nodeId, proxyUrl, machineId, token: nodeKeys.tokenTo(nodeId) };
  }

  return createFollowers({
    routes,
    nodeOf,
    autoResume: autoResuming.autoResume,
    pausedSandboxes: () => autoResuming.pausedSandboxes(),
    find,
    alone,
    docsUrl,
    log: base.log.child({ part: "edges" }),
  });
}
