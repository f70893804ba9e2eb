/**
 * An edge and a node's proxy with a routing table that tests write, and "containers", which are addresses of this machine's
 * loopback.
 */

import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import { type NodeRoute, startNodeProxy } from "../../../../agent/proxy/node-proxy.ts";
import { type Edge, startEdge } from "../../../../orchestrator/edge/edge.ts";
import type {
  AutoResume,
  EdgeRoute,
  FindSandbox,
  RemovalListener,
  RemovalReason,
} from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { connectionLimits } from "../../../../shared/http/connections/connection-limits.ts";
import type { Room } from "../../../../shared/program/descriptors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import type { Door, Meeting } from "../../../../shared/tls/peers.ts";
import { listening } from "../../../support/peers/listening.ts";

export const ENVD_PORT = 49_983;
const NODE_TOKEN = "node-token-of-these-tests";
const log = createLog({ component: "test", level: "silent" });

/** The ways on which a request reaches its sandbox. */
export const WAYS = [
  { route: "straight to the container", sameHost: true },
  { route: "through the node's proxy", sameHost: false },
];

export interface FrontDoorOptions {
  /** When false, every request goes through the node's proxy. */
  readonly sameHost?: boolean;
  readonly autoResume?: AutoResume;
  readonly find?: FindSandbox;
  /** False: another orchestrator may take a sandbox away. */
  readonly hasEveryRemoval?: boolean;
  readonly maxConnectionsPerSandbox?: number;
  /** How long a request waits for a node that takes no connection. */
  readonly nodeWaitMs?: number;
  /** The connection limits that the edge and the node's proxy have each; without them there is no limit. */
  readonly room?: Room;
  /** The node's proxy takes TLS only, and the edge meets it so. */
  readonly tls?: { readonly door: Door; readonly meeting: Meeting };
}

export interface FrontDoor {
  readonly edge: Edge;
  readonly port: number;
  readonly nodeProxyUrl: string;
  readonly routes: Map<string, EdgeRoute>;
  readonly nodeRoutes: Map<string, NodeRoute>;
  /** Adds a sandbox with an address of its own. */
  add(route?: Partial<EdgeRoute>): EdgeRoute;
  remove(sandboxId: string, reason?: RemovalReason): Promise<void>;
  /** Does the agent's half of a removal. */
  removeOnNode(sandboxId: string): Promise<void>;
  /** Stops the node's proxy, as when its agent ends; the sandboxes run on. */
  stopNode(): Promise<void>;
  /** Stops the edge and the node's proxy. */
  stop(): Promise<void>;
}

let addresses = 0;

export async function openFrontDoor(options: FrontDoorOptions = {}): Promise<FrontDoor> {
  const teardown = new Teardown(log);
  const routes = new Map<string, EdgeRoute>();
  const nodeRoutes = new Map<string, NodeRoute>();
  const listeners = new Set<RemovalListener>();
  const { room } = options;
  const limits = () => (room === undefined ? {} : { connections: connectionLimits({ ...room, name: "test", log }) });
  const proxy = await startNodeProxy(
    { host: "127.0.0.1", port: 0, nodeTokens: () => [NODE_TOKEN], door: options.tls?.door },
    { log, ...limits(), route: (sandboxId) => nodeRoutes.get(sandboxId) },
  );
  teardown.add("proxy", () => proxy.stop());
  const edge = await startEdge(
    {
      host: "127.0.0.1",
      port: 0,
      nodeToken: () => NODE_TOKEN,
      meeting: () => options.tls?.meeting,
      maxConnectionsPerSandbox: options.maxConnectionsPerSandbox ?? 1000,
      nodeWaitMs: options.nodeWaitMs ?? 0,
    },
    {
      log,
      ...limits(),
      routes: {
        lookup: (sandboxId) => routes.get(sandboxId),
        byToken: (token) => [...routes.values()].find(({ envdAccessToken }) => envdAccessToken === token),
        running: () => routes.values(),
        onRemove(listener) {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      },
      ...(options.autoResume === undefined ? {} : { autoResume: options.autoResume }),
      ...(options.find === undefined ? {} : { find: options.find }),
      hasEveryRemoval: () => options.hasEveryRemoval !== false,
    },
  );
  teardown.add("edge", () => edge.stop());

  const door: FrontDoor = {
    edge,
    port: edge.port,
    nodeProxyUrl: proxy.url,
    routes,
    nodeRoutes,
    add(given = {}) {
      const number = ++addresses;
      const route: EdgeRoute = {
        sandboxId: `i${process.pid}n${number}`,
        executionId: `execution-${number}`,
        state: "running",
        nodeId: "node",
        proxyUrl: proxy.url,
        address: `127.${1 + (process.pid % 250)}.${number >> 8}.${number & 255}`,
        sameHost: options.sameHost ?? true,
        envdAccessToken: `envd-token-${number}`,
        allowPublicTraffic: true,
        httpsPorts: [],
        ...given,
      };
      routes.set(route.sandboxId, route);
      nodeRoutes.set(route.sandboxId, {
        executionId: route.executionId,
        address: route.address,
        controlToken: `control-${number}`,
      });
      return route;
    },
    async remove(sandboxId, reason) {
      const route = routes.get(sandboxId);
      routes.delete(sandboxId);
      if (route === undefined) return;
      await Promise.all([...listeners].map(async (listener) => listener(route.executionId, sandboxId, reason)));
    },
    async removeOnNode(sandboxId) {
      const route = nodeRoutes.get(sandboxId);
      nodeRoutes.delete(sandboxId);
      if (route !== undefined) await proxy.close(route.executionId);
    },
    stopNode: () => proxy.stop(),
    stop: () => teardown.run(),
  };
  return door;
}

export interface Backend {
  readonly port: number;
  readonly server: Server | TcpServer;
  /** The number of connections accepted so far. */
  accepted(): number;
  open(): number;
  close(): Promise<void>;
}

/** An HTTP server in a "container". */
export function httpBackend(address: string, listener: RequestListener, port = 0): Promise<Backend> {
  return backend(createServer({ keepAliveTimeout: 60_000 }, listener), address, port);
}

/** A raw TCP server that sends exactly what the test orders. */
export function rawBackend(address: string, onConnection: (socket: Socket) => void, port = 0): Promise<Backend> {
  return backend(createTcpServer({ allowHalfOpen: true }, onConnection), address, port);
}

async function backend(server: Server | TcpServer, address: string, port: number): Promise<Backend> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  const bound = await listening(server, address, port);
  return {
    port: bound,
    server,
    accepted: () => accepted,
    open: () => sockets.size,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The routing headers as text. */
export function routing(route: EdgeRoute, port: number): string {
  return `Host: 127.0.0.1\r\nE2b-Sandbox-Id: ${route.sandboxId}\r\nE2b-Sandbox-Port: ${port}\r\n`;
}

/** The routing headers as an object for fetch. */
export function routed(route: EdgeRoute, port: number): Record<string, string> {
  return { "e2b-sandbox-id": route.sandboxId, "e2b-sandbox-port": String(port) };
}
