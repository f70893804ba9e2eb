/** The node and address of each running sandbox, for its traffic. Kept in memory and rebuilt from the store at start. */

import { LRUCache } from "lru-cache";
import type { Seeds } from "../base/keys/seeds.ts";
import type { EdgeRoute, EdgeRoutingTable, RemovalListener, RemovalReason } from "../edge/sandbox-lookup.ts";
import { TokenIndex } from "../edge/token-index.ts";
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
  /** The address of a node has changed. */
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
  const routes = new Map<string, EdgeRoute>();
  const tokens = new TokenIndex<EdgeRoute>();
  const removed = new LRUCache<string, true>({ max: REMEMBERED });
  const listeners = new Set<RemovalListener>();

  async function unroute(sandboxId: string, executionId: string, reason: RemovalReason): Promise<void> {
    const route = routes.get(sandboxId);
    if (route === undefined || route.executionId !== executionId) return;
    routes.delete(sandboxId);
    tokens.delete(route);
    await Promise.all([...listeners].map(async (listener) => listener(executionId, sandboxId, reason)));
  }

  /** The token of a sandbox changes when its seed is rotated. */
  function put(route: EdgeRoute): void {
    const before = routes.get(route.sandboxId);
    if (before !== undefined && before.envdAccessToken !== route.envdAccessToken) tokens.delete(before);
    routes.set(route.sandboxId, route);
    tokens.set(route);
  }

  return {
    get size() {
      return routes.size;
    },
    lookup: (sandboxId) => routes.get(sandboxId),
    byToken: (envdAccessToken) => tokens.find(envdAccessToken),
    running: () => routes.values(),
    onRemove(listener) {
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
      await unroute(sandboxId, executionId, reason);
    },
    suspend: (sandboxId, executionId) => unroute(sandboxId, executionId, "paused"),
    hold(sandboxId, executionId, held) {
      const route = routes.get(sandboxId);
      if (route === undefined || route.executionId !== executionId || route.held === held) return;
      put({ ...route, held });
    },
    refreshNode(nodeId) {
      const place = deps.place(nodeId);
      if (place === undefined) return;
      for (const route of routes.values()) {
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
