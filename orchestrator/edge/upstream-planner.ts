/**
 * Chooses how to reach a sandbox's port: its address when the node is this machine and every removal of a route is known,
 * otherwise the node's proxy, which confirms that the execution is there.
 */

import { isIP, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { sameSecret } from "../../shared/ids.ts";
import {
  ENVD_PORT,
  EXECUTION_HEADER,
  field,
  INTERPRETER_PORT,
  NODE_TOKEN_HEADER,
  PORT_HEADER,
  ROUTING_HEADERS,
  SANDBOX_HEADER,
  TLS_HEADER,
} from "../../shared/proxy/hop-contract.ts";
import type { NextHop } from "../../shared/proxy/sending/forward-plan.ts";
import { dialTcp, secure, secureWith } from "../../shared/proxy/sockets/dial.ts";
import { clientOptions, type Meeting } from "../../shared/tls/peers.ts";
import type { EdgeRoute } from "./sandbox-lookup.ts";
import { hostName } from "./target.ts";
import { SCHEME_HEADER, TRAFFIC_TOKEN_HEADERS } from "./visitor.ts";

const DIAL_TIMEOUT_MS = 5_000;
/** Idle time for envd and the node proxy, which belong to this platform and keep idle connections for longer. */
const OURS_IDLE_MS = 30_000;
/** Idle time for users' servers: many close a connection after five seconds. */
const USER_IDLE_MS = 3_000;
/** Development servers that speak TLS have a certificate for this name more often than for any other. */
const DEFAULT_SERVER_NAME = "localhost";
const MAX_PREPARED_PORTS = 64;

/** The data that all requests to one port of one execution share. */
export interface PreparedPort {
  readonly nextHops: readonly NextHop[];
  /** `Host` for the server, where the sandbox masks it. */
  readonly host: string | undefined;
  readonly drops: (name: string, value: string) => boolean;
}

/** What the edge shows to a node's proxy. */
export interface NodeAccess {
  readonly token: (nodeId: string) => string;
  /** How an `https` address of a node is met. Absent: by its host name and the system's authorities. */
  readonly meeting?: ((nodeId: string) => Meeting | undefined) | undefined;
  /** Whether every removal of a route is known: then an address of a container is certainly still that of the execution. */
  readonly hasEveryRemoval: () => boolean;
}

export class UpstreamPlanner {
  readonly #access: NodeAccess;
  readonly #prepared = new WeakMap<EdgeRoute, Map<number, Ways>>();

  constructor(access: NodeAccess) {
    this.#access = access;
  }

  prepare(route: EdgeRoute, port: number): PreparedPort {
    let ports = this.#prepared.get(route);
    if (ports === undefined) {
      ports = new Map();
      this.#prepared.set(route, ports);
    }
    let prepared = ports.get(port);
    if (prepared === undefined) {
      // Bounded: a visitor who tries every port must not fill the cache.
      if (ports.size >= MAX_PREPARED_PORTS) ports.clear();
      prepared = prepare(route, port, this.#access);
      ports.set(port, prepared);
    }
    return this.#access.hasEveryRemoval() ? prepared.any : prepared.confirmed;
  }
}

interface Ways {
  readonly any: PreparedPort;
  /** Through the node's proxy only. */
  readonly confirmed: PreparedPort;
}

function prepare(route: EdgeRoute, port: number, access: NodeAccess): Ways {
  const envd = port === ENVD_PORT;
  const host = envd ? undefined : route.maskRequestHost?.replaceAll("${PORT}", String(port));
  const serverName = envd || !route.httpsPorts.includes(port) ? undefined : serverNameOf(host);
  const node = throughNode(route, port, serverName, access);
  const confirmed: PreparedPort = {
    host,
    nextHops: [node],
    drops(name, value) {
      if (ROUTING_HEADERS.has(name) || TRAFFIC_TOKEN_HEADERS.has(name)) return true;
      if (envd || (port === INTERPRETER_PORT && name === "x-access-token")) return false;
      // Only envd's own token is removed: a user's server may have a header of this name itself.
      if (name === "x-access-token") return sameSecret(value, route.envdAccessToken);
      return host !== undefined && name === "x-forwarded-host";
    },
  };
  const straight = () => direct(route, port, serverName, access.hasEveryRemoval);
  return { confirmed, any: route.sameHost ? { ...confirmed, nextHops: [straight(), node] } : confirmed };
}

/** What a server in a sandbox is told of its client; it belongs to one request, so the prepared data does not hold it. */
interface Told {
  /** Where the sandbox masks it. */
  readonly originalHost: string;
  /** The client speaks HTTPS, which ends here. */
  readonly isSecure: boolean;
}

export function forRequest(
  { host, nextHops, drops }: PreparedPort,
  { originalHost, isSecure }: Told,
): Pick<PreparedPort, "nextHops" | "drops"> {
  const told = [
    ...(host === undefined ? [] : ["X-Forwarded-Host", originalHost]),
    ...(isSecure ? ["X-Forwarded-Proto", "https"] : []),
  ];
  if (told.length === 0) return { nextHops, drops };
  return {
    nextHops: nextHops.map((nextHop) => ({ ...nextHop, added: [...nextHop.added, ...told] })),
    drops: isSecure ? (name, value) => name === SCHEME_HEADER || drops(name, value) : drops,
  };
}

function serverNameOf(host: string | undefined): string {
  return host === undefined ? DEFAULT_SERVER_NAME : hostName(host);
}

function direct(
  route: EdgeRoute,
  port: number,
  serverName: string | undefined,
  hasEveryRemoval: () => boolean,
): NextHop {
  const target = { host: route.address, port, timeoutMs: DIAL_TIMEOUT_MS };
  const envd = port === ENVD_PORT;
  return {
    key: `direct ${port}`,
    async dial(signal) {
      // Some time may have passed since the way was chosen. The next hop is the node's proxy.
      if (!hasEveryRemoval()) throw new Error("the address may be another sandbox's by now");
      const socket = await dialTcp(target, signal);
      return serverName === undefined ? socket : secure(socket, serverName, DIAL_TIMEOUT_MS, signal);
    },
    added: [],
    idleMs: envd ? OURS_IDLE_MS : USER_IDLE_MS,
    ours: envd,
    proxied: false,
  };
}

function throughNode(
  route: EdgeRoute,
  port: number,
  serverName: string | undefined,
  { token, meeting }: NodeAccess,
): NextHop {
  return {
    key: "node",
    dial: (signal) => dialNode(route.proxyUrl, meeting?.(route.nodeId), signal),
    added: [
      ...field(NODE_TOKEN_HEADER, token(route.nodeId)),
      ...field(SANDBOX_HEADER, route.sandboxId),
      ...field(EXECUTION_HEADER, route.executionId),
      ...field(PORT_HEADER, String(port)),
      ...(serverName === undefined ? [] : field(TLS_HEADER, serverName)),
    ],
    idleMs: OURS_IDLE_MS,
    ours: true,
    proxied: true,
  };
}

async function dialNode(proxyUrl: string, meeting: Meeting | undefined, signal: AbortSignal): Promise<Socket> {
  const { protocol, hostname, port } = new URL(proxyUrl);
  const isTls = protocol === "https:";
  const host = hostname.replace(/^\[|\]$/g, "");
  const target = { host, port: port === "" ? (isTls ? 443 : 80) : Number(port), timeoutMs: DIAL_TIMEOUT_MS };
  const socket = await dialTcp(target, signal);
  if (!isTls) return socket;
  const options = meeting === undefined ? byHostName(host) : clientOptions(meeting);
  return secureWith(socket, options, DIAL_TIMEOUT_MS, signal);
}

function byHostName(host: string): ConnectionOptions {
  return { host, ...(isIP(host) === 0 ? { servername: host } : {}) };
}
