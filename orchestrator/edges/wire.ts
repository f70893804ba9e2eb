/** Constructs what edge programs follow: the routes of this orchestrator, and the answers to what they ask. */

import type { Base } from "../base/base.ts";
import type { NodeLine } from "../edge/following/messages.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { Store } from "../store/store.ts";
import { createFollowers, type Followers, type FollowersDeps } from "./followers.ts";

interface EdgesDeps {
  readonly store: Pick<Store, "sandboxes">;
  readonly nodes: Pick<Nodes, "get">;
  readonly routes: RoutingTable;
  readonly autoResuming: Lifecycle["autoResuming"];
  readonly docsUrl: string | undefined;
}

export function createEdges(base: Base, { store, nodes, routes, autoResuming, docsUrl }: EdgesDeps): Followers {
  const { nodeKeys, alone } = base;

  function nodeOf(nodeId: string): NodeLine | undefined {
    const facts = nodes.get(nodeId)?.facts;
    if (facts === undefined) return undefined;
    const { proxyUrl, machineId } = facts;
    return { is: "node", nodeId, proxyUrl, machineId, token: nodeKeys.tokenTo(nodeId) };
  }

  async function find(sandboxId: string): ReturnType<FollowersDeps["find"]> {
    const record = await store.sandboxes.get(sandboxId);
    if (record?.state === "running" || record?.state === "snapshotting") {
      if (routes.lookup(sandboxId)?.executionId !== record.executionId) routes.add(record);
      return "running";
    }
    return record === undefined || record.state === "gone" || record.state === "killing" ? "not_found" : "paused";
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
