/** The node and address of each running sandbox, for its traffic. Kept in memory and rebuilt from the store at start. */

import { LRUCache } from "lru-cache";
import { atMost } from "../../shared/program/at-most.ts";
import type { Seeds } from "../base/keys/seeds.ts";
import { RouteMap } from "../edge/route-map.ts";
import type { EdgeRoute, EdgeRoutingTable, RemovalReason } from "../edge/sandbox-lookup.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";

/** Address of a node's sandboxes. */
export interface NodePlace {
  readonly proxyUrl: string;
  readonly sameHost: boolean;
}

export interface RoutingTable extends EdgeRoutingTable {
  /** Routes a running sandbox. An execution that was removed is not routed again, however late its start returns. */
  add(record: SandboxRecord): void;
  /** Removes the route in this tick; resolves when its streams have ended. No effect for an unknown execution. */
  remove(sandboxId: string, executionId: string, reason: RemovalReason): Promise<void>;
  /** As `remove`, for a pause: if the pause fails, `add` routes the same execution again. */
  suspend(sandboxId: string, executionId: string): Promise<void>;
  /** The sandbox was frozen or thawed. No effect for an unknown or other execution. */
  hold(sandboxId: string, executionId: string, held: boolean): void;
  /** Calls the listener with each route that is added or changed. Returns the function that removes the listener. */
  onPut(listener: (route: EdgeRoute) => void): () => void;
  /** The address of a node has changed, or the key of its tokens. */
  refreshNode(nodeId: string): void;
  readonly size: number;
}

export interface RoutingTableDeps {
  readonly seeds: Seeds;
  place(nodeId: string): NodePlace | undefined;
}

/** Number of removed executions remembered, so that a start that returns late cannot restore a route. */
const REMEMBERED = 10_000;

export function createRoutingTable(deps: RoutingTableDeps): RoutingTable {
  const routes = new RouteMap();
  const removed = new LRUCache<string, true>(atMost(REMEMBERED));
  const listeners = new Set<(route: EdgeRoute) => void>();

  function put(route: EdgeRoute): void {
    routes.put(route);
    for (const listener of listeners) listener(route);
  }

  return {
    get size() {
      return routes.size;
    },
    lookup: (sandboxId) => routes.lookup(sandboxId),
    byToken: (envdAccessToken) => routes.byToken(envdAccessToken),
    running: () => routes.running(),
    onRemove: (listener) => routes.onRemove(listener),
    onPut(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    add(record) {
      if (removed.has(record.executionId)) return;
      const place = deps.place(record.nodeId);
      if (place === undefined || record.address === undefined) return;
      put(toRoute(record, place, deps.seeds));
    },
    async remove(sandboxId, executionId, reason) {
      removed.set(executionId, true);
      await routes.remove(sandboxId, executionId, reason);
    },
    suspend: (sandboxId, executionId) => routes.remove(sandboxId, executionId, "paused"),
    hold(sandboxId, executionId, held) {
      const route = routes.lookup(sandboxId);
      if (route === undefined || route.executionId !== executionId || route.held === held) return;
      put({ ...route, held });
    },
    refreshNode(nodeId) {
      const place = deps.place(nodeId);
      if (place === undefined) return;
      for (const route of routes.running()) {
        if (route.nodeId === nodeId) put({ ...route, ...place });
      }
    },
  };
}

function toRoute(record: SandboxRecord, place: NodePlace, seeds: RoutingTableDeps["seeds"]): EdgeRoute {
  const allowPublicTraffic = record.network?.allowPublicTraffic ?? true;
  return {
    sandboxId: record.id,
    executionId: record.executionId,
    state: record.state,
    held: false,
    nodeId: record.nodeId,
    proxyUrl: place.proxyUrl,
    sameHost: place.sameHost,
    address: record.address ?? "",
    envdAccessToken: seeds.envdToken(record),
    trafficAccessToken: allowPublicTraffic ? undefined : seeds.trafficToken(record),
    allowPublicTraffic,
    maskRequestHost: record.network?.maskRequestHost,
    httpsPorts: record.network?.httpsPorts ?? [],
  };
}
