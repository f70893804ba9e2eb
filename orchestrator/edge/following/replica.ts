/** The routes as an edge program has learnt them. Nodes come before the routes that name them. No I/O. */

import { RouteMap } from "../route-map.ts";
import type { EdgeRoute } from "../sandbox-lookup.ts";
import type { NodeLine, RouteLine } from "./messages.ts";

export class Replica extends RouteMap {
  readonly #nodes = new Map<string, NodeLine>();
  readonly #machineId: string | undefined;

  /** @param machineId of this machine; undefined: not known, so no node is on it */
  constructor(machineId: string | undefined) {
    super();
    this.#machineId = machineId;
  }

  node(line: NodeLine): void {
    this.#nodes.set(line.nodeId, line);
  }

  tokenTo(nodeId: string): string {
    return this.#nodes.get(nodeId)?.token ?? "";
  }

  /** A route of another execution takes the place of the former one, whose streams end. */
  async learn(line: RouteLine): Promise<void> {
    const node = this.#nodes.get(line.nodeId);
    if (node === undefined) throw new Error(`a route names node '${line.nodeId}', which was not sent before it`);
    const sameHost = this.#machineId !== undefined && node.machineId === this.#machineId;
    const route = routeOf(line, { proxyUrl: node.proxyUrl, sameHost });
    const former = this.lookup(route.sandboxId);
    const ended =
      former === undefined || former.executionId === route.executionId
        ? undefined
        : this.remove(former.sandboxId, former.executionId, "lost");
    this.put(route);
    await ended;
  }
}

function routeOf(line: RouteLine, place: Pick<EdgeRoute, "proxyUrl" | "sameHost">): EdgeRoute {
  return {
    sandboxId: line.sandboxId,
    executionId: line.executionId,
    state: line.state,
    held: line.held,
    nodeId: line.nodeId,
    ...place,
    address: line.address,
    envdAccessToken: line.envdAccessToken,
    trafficAccessToken: line.trafficAccessToken,
    allowPublicTraffic: line.allowPublicTraffic,
    maskRequestHost: line.maskRequestHost,
    httpsPorts: line.httpsPorts,
  };
}
