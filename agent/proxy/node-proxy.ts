/**
 * The node's proxy: carries the edge's traffic to the sandboxes of this node. It knows the sandboxes: it retries a server
 * that is just starting, reaches servers on the sandbox's loopback, and says whether a port is closed or a sandbox gone.
 */

import type { Socket } from "node:net";
import { type ConnectionLimits, promote } from "../../shared/http/connections/connection-limits.ts";
import { sameSecret } from "../../shared/ids.ts";
import type { Log } from "../../shared/program/log.ts";
import {
  ENVD_PORT,
  EXECUTION_HEADER,
  LEASE_REASON,
  NODE_TOKEN_HEADER,
  PORT_HEADER,
  PROXY_ERROR_HEADER,
  PROXY_REASON_HEADER,
  type ProxyError,
  ROUTING_HEADERS,
  SANDBOX_HEADER,
  TLS_HEADER,
  UNDER_WAY_REASON,
} from "../../shared/proxy/hop-contract.ts";
import type { ClientSide } from "../../shared/proxy/listening/client.ts";
import { listen } from "../../shared/proxy/listening/listen.ts";
import { headerValue, isSafe } from "../../shared/proxy/raw-headers.ts";
import { AS_A_PROXY } from "../../shared/proxy/sending/as-a-proxy.ts";
import type { Failure, ForwardPlan, NextHop } from "../../shared/proxy/sending/forward-plan.ts";
import { Forwarder } from "../../shared/proxy/sending/forwarder.ts";
import { dialTcp, secure } from "../../shared/proxy/sockets/dial.ts";
import type { Door } from "../../shared/tls/peers.ts";
import { dialLoopback } from "./loopback-tunnel.ts";

const DIAL_TIMEOUT_MS = 5_000;
const TLS_TIMEOUT_MS = 5_000;
/** Time in which a server usually starts to listen; a refused connection is retried that long. */
const RETRY_AFTER_MS = [100, 200, 300, 400] as const;
/** Idle time for envd: it is ours and keeps idle connections for longer. */
const ENVD_IDLE_MS = 30_000;
/** Idle time for users' servers: many close a connection after five seconds. */
const USER_IDLE_MS = 3_000;
/** To clients of an edge of an earlier version; a later one has its own words. */
const MAYBE_CARRIED_OUT =
  "The sandbox's node restarts its agent; the sandbox runs on and may have carried the request out: the request was not sent again";
const NOT_SENT = "The sandbox's node restarts its agent; the request has not reached the sandbox: send it again";
const JSON_HEADERS = [
  "Access-Control-Allow-Origin",
  "*",
  "Content-Type",
  "application/json; charset=utf-8",
  "Cache-Control",
  "no-store",
];
const CLOSED = { code: "unavailable", message: "The sandbox was killed or reached its end of life." };

export interface NodeProxyConfig {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Tokens of the edge: the current one first. */
  readonly nodeTokens: () => readonly string[];
  /** Absent: plain HTTP. */
  readonly door?: Door | undefined;
}

/** A running sandbox as the proxy sees it. */
export interface NodeRoute {
  readonly executionId: string;
  readonly address: string;
  /** Authorises envd's internal routes. */
  readonly controlToken: string;
  /** Why the sandbox is frozen: it would accept connections and never answer. Absent: it runs. */
  readonly held?: "disk" | "lease" | undefined;
}

export interface NodeProxyDeps {
  readonly log: Log;
  /** Limits of connections; absent: derived from the descriptors. */
  readonly connections?: ConnectionLimits;
  route(sandboxId: string): NodeRoute | undefined;
}

export interface NodeProxy {
  readonly url: string;
  /** Ends the traffic of an execution and drops its connections; the caller has removed its route before. */
  close(executionId: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startNodeProxy(config: NodeProxyConfig, deps: NodeProxyDeps): Promise<NodeProxy> {
  // The edge tells clients why a stream ended; this proxy only cuts it.
  const forwarder = new Forwarder({ lossGraceMs: 0 });
  const inbound = await listen(config.host, config.port, {
    refusalHeaders: [],
    handle: serve,
    admits: (socket) => deps.connections?.admit(socket) ?? true,
    door: config.door,
  });
  const scheme = config.door === undefined ? "http" : "https";
  const state = { stopping: false };
  deps.log.info({ host: config.host, port: inbound.port }, "node proxy listening");

  function serve(client: ClientSide): void {
    const { rawHeaders, url = "" } = client.request;
    const given = headerValue(rawHeaders, NODE_TOKEN_LOWER) ?? "";
    if (!config.nodeTokens().some((token) => sameSecret(given, token))) {
      answer(client, "unauthorized");
      return;
    }
    promote(client.request.socket, "ours");
    const port = Number(headerValue(rawHeaders, PORT_LOWER));
    const route = deps.route(headerValue(rawHeaders, SANDBOX_LOWER) ?? "");
    if (route === undefined || route.executionId !== headerValue(rawHeaders, EXECUTION_LOWER)) {
      answer(client, "removed");
      return;
    }
    if (route.held !== undefined) {
      answer(client, "held", route.held === "lease" ? [PROXY_REASON_HEADER, LEASE_REASON] : []);
      return;
    }
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      answer(client, "closed");
      return;
    }
    const tlsName = headerValue(rawHeaders, TLS_LOWER);
    forwarder.forward({ ...planFor(route, port, tlsName, url), refuse }, client);
  }

  function refuse(client: ClientSide, failure: Failure): void {
    if (state.stopping && failure.is === "removed") answerStopping(client, failure.underWay);
    else answer(client, errorOf(failure), reasonOf(failure));
  }

  return {
    url: `${scheme}://${config.host.includes(":") ? `[${config.host}]` : config.host}:${inbound.port}`,
    close: (executionId) => forwarder.close(executionId, CLOSED),
    async stop() {
      state.stopping = true;
      const closed = inbound.close();
      await forwarder.stop(CLOSED);
      inbound.destroy();
      await closed;
    },
  };
}

const NODE_TOKEN_LOWER = NODE_TOKEN_HEADER.toLowerCase();
const PORT_LOWER = PORT_HEADER.toLowerCase();
const SANDBOX_LOWER = SANDBOX_HEADER.toLowerCase();
const EXECUTION_LOWER = EXECUTION_HEADER.toLowerCase();
const TLS_LOWER = TLS_HEADER.toLowerCase();

function planFor(
  route: NodeRoute,
  port: number,
  tlsName: string | undefined,
  path: string,
): Omit<ForwardPlan, "refuse"> {
  const envd = port === ENVD_PORT;
  const nextHop: NextHop = {
    key: tlsName === undefined ? `${port}` : `${port} tls ${tlsName}`,
    dial: (signal) => dial(route, port, tlsName, signal),
    added: [],
    idleMs: envd ? ENVD_IDLE_MS : USER_IDLE_MS,
    ours: envd,
    proxied: false,
  };
  return {
    executionId: route.executionId,
    path,
    edits: { drops: (name) => ROUTING_HEADERS.has(name) },
    nextHops: [nextHop],
    // Only this proxy may set these headers: a sandbox could pretend with them to be the platform.
    keepsBack: (name) => name === PROXY_ERROR_HEADER || name === PROXY_REASON_HEADER,
    framesErrors: false,
    ...AS_A_PROXY,
  };
}

async function dial(route: NodeRoute, port: number, tlsName: string | undefined, signal: AbortSignal): Promise<Socket> {
  const socket = await dialPort(route, port, signal);
  return tlsName === undefined ? socket : secure(socket, tlsName, TLS_TIMEOUT_MS, signal);
}

async function dialPort(route: NodeRoute, port: number, signal: AbortSignal): Promise<Socket> {
  const { address, controlToken } = route;
  const direct = { host: address, port, timeoutMs: DIAL_TIMEOUT_MS };
  for (let attempt = 0; ; attempt++) {
    try {
      return await dialTcp(direct, signal);
    } catch (error) {
      if (signal.aborted) throw error;
    }
    try {
      if (port !== ENVD_PORT) {
        return await dialLoopback({ address, controlToken, port, timeoutMs: DIAL_TIMEOUT_MS }, signal);
      }
    } catch (error) {
      if (signal.aborted) throw error;
    }
    const waitMs = RETRY_AFTER_MS[attempt];
    if (waitMs === undefined) throw new Error(`nothing listens on port ${port}`);
    await pause(waitMs, signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new Error("the caller left while the port was dialled again", { cause: signal.reason }));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}

function errorOf(failure: Failure): ProxyError {
  return failure.is === "unreachable" ? "closed" : failure.is;
}

function reasonOf(failure: Failure): readonly string[] {
  if (failure.is === "bad_response") return [PROXY_REASON_HEADER, failure.reason];
  return failure.is === "removed" && failure.underWay ? [PROXY_REASON_HEADER, UNDER_WAY_REASON] : [];
}

const STATUS: Readonly<Record<ProxyError, number>> = {
  closed: 502,
  bad_response: 502,
  unauthorized: 401,
  removed: 421,
  unforwardable: 501,
  held: 507,
  stopping: 503,
};

/** The edge translates these answers for clients; no other caller is expected. */
function answer(client: ClientSide, error: ProxyError, more: readonly string[] = []): void {
  const headers = [PROXY_ERROR_HEADER, error, ...more, "Content-Length", "0"];
  client.refuse({ status: STATUS[error], reason: "", headers, body: "" });
}

/**
 * The sandbox runs on: the edge sends a request again that may reach it twice. Any other one gets an answer that an edge of an earlier
 * version passes on as it is; to that edge the sandbox of a `removed` request would have ended, if it is on this node still.
 */
function answerStopping(client: ClientSide, underWay: boolean): void {
  const { request } = client;
  const reason = underWay ? [PROXY_REASON_HEADER, UNDER_WAY_REASON] : [];
  if (isSafe(request)) {
    answer(client, "removed", [PROXY_REASON_HEADER, UNDER_WAY_REASON]);
    return;
  }
  const sandboxId = headerValue(request.rawHeaders, SANDBOX_LOWER);
  const text = JSON.stringify({ sandboxId, message: underWay ? MAYBE_CARRIED_OUT : NOT_SENT, code: STATUS.stopping });
  client.refuse({
    status: STATUS.stopping,
    reason: "",
    headers: [
      PROXY_ERROR_HEADER,
      "stopping",
      ...reason,
      ...JSON_HEADERS,
      "Content-Length",
      String(Buffer.byteLength(text)),
    ],
    body: text,
  });
}
