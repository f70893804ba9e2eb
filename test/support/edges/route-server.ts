/** The orchestrator's side of the stream of routes over a real socket, with a routing table that the test writes. */

import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { edgeApi } from "../../../orchestrator/edge/following/messages.ts";
import { type RouteSource, routeSource } from "../../../orchestrator/edge/following/source.ts";
import { RouteMap } from "../../../orchestrator/edge/route-map.ts";
import type { AutoResume, EdgeRoute, PausedSandbox, Whereabouts } from "../../../orchestrator/edge/sandbox-lookup.ts";
import { createFollowers, type Followers, type FollowersDeps } from "../../../orchestrator/edges/followers.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });

/** The routing table of an orchestrator, as far as edges know it. */
class TestRoutes extends RouteMap {
  readonly #putListeners = new Set<(route: EdgeRoute) => void>();

  onPut(listener: (route: EdgeRoute) => void): () => void {
    this.#putListeners.add(listener);
    return () => void this.#putListeners.delete(listener);
  }

  override put(route: EdgeRoute): void {
    super.put(route);
    for (const listener of this.#putListeners) listener(route);
  }
}

export interface RouteServer {
  readonly routes: TestRoutes;
  readonly followers: Followers;
  readonly url: string;
  /** What the records say of sandboxes without a route; others are not found. */
  readonly fates: Map<string, Whereabouts>;
  readonly paused: PausedSandbox[];
  /** Answers questions for sandboxes. */
  onWake: AutoResume;
  /** A way to it, which the test may hinder. */
  source(hindered?: Partial<RouteSource>): RouteSource;
  /** Ends every stream at once and takes no new one; `start` listens again, at the same address, with the same routes. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export async function startRouteServer(given: Partial<FollowersDeps> = {}): Promise<RouteServer> {
  const routes = new TestRoutes();
  const fates = new Map<string, Whereabouts>();
  const paused: PausedSandbox[] = [];
  const running: { stop?: () => Promise<void>; followers?: Followers; port: number } = { port: 0 };

  async function start(): Promise<void> {
    const followers = createFollowers({
      routes,
      nodeOf: (nodeId) => ({
        is: "node",
        nodeId,
        proxyUrl: "http://127.0.0.1:9",
        machineId: "this-machine",
        token: `to-${nodeId}`,
      }),
      autoResume: (...visit) => server.onWake(...visit),
      pausedSandboxes: () => Promise.resolve(paused),
      find(sandboxId) {
        const route = routes.lookup(sandboxId);
        if (route !== undefined) return Promise.resolve({ is: "running", route });
        return Promise.resolve(fates.get(sandboxId) ?? { is: "not_found" });
      },
      alone: true,
      docsUrl: "http://api.test/docs",
      log,
      ...given,
    });
    const http = createServer(log);
    serve(http, edgeApi, followers.handlers, () => ({ name: "test" }));
    await http.listen({ host: "127.0.0.1", port: running.port });
    running.port = (http.server.address() as AddressInfo).port;
    running.followers = followers;
    running.stop = async () => {
      await followers.stop();
      await http.close();
    };
  }

  const server: RouteServer = {
    routes,
    fates,
    paused,
    get followers() {
      if (running.followers === undefined) throw new Error("the server of routes was not started");
      return running.followers;
    },
    get url() {
      return `http://127.0.0.1:${running.port}`;
    },
    onWake: () => Promise.resolve({ is: "not_found" }),
    source: (hindered = {}) => ({
      ...routeSource({ url: server.url, headers: () => ({}), meeting: undefined }),
      ...hindered,
    }),
    async kill() {
      const { stop } = running;
      delete running.stop;
      await stop?.();
    },
    start,
  };
  await start();
  onTestFinished(() => server.kill());
  return server;
}

let made = 0;

export function newRoute(given: Partial<EdgeRoute> = {}): EdgeRoute {
  const number = ++made;
  return {
    sandboxId: `i${number}`,
    executionId: `execution-${number}`,
    state: "running",
    held: false,
    nodeId: "n1",
    proxyUrl: "http://127.0.0.1:9",
    sameHost: true,
    address: "10.0.0.2",
    envdAccessToken: `envd-token-${number}`,
    allowPublicTraffic: true,
    httpsPorts: [],
    ...given,
  };
}
