/**
 * The sandboxes' front door: from a request to the sandbox and port it is for, through every check, to the forwarder.
 * Everything it answers itself comes from `answers.ts`.
 */

import { STATUS_CODES } from "node:http";
import type { ClientRequest, ClientResponse, UpgradeRequest } from "../../shared/forward/client.ts";
import type { StreamError } from "../../shared/forward/connect-envelope.ts";
import type { Failure, ForwardPlan } from "../../shared/forward/forward-plan.ts";
import { Forwarder } from "../../shared/forward/forwarder.ts";
import { ENVD_PORT, line } from "../../shared/forward/hop-contract.ts";
import { listen } from "../../shared/forward/inbound.ts";
import { headerValue } from "../../shared/forward/raw-headers.ts";
import { sameSecret } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { shownState } from "../../shared/sandbox-state.ts";
import { answerFor, CORS_LINES, preflightAnswer, type Refusal } from "./answers.ts";
import type { EdgeRoute, EdgeRoutes, RemovalReason, Sleeper, Wake, WakeTokens } from "./edge-routes.ts";
import { isInternalRoute } from "./internal-routes.ts";
import { isNavigation, isPreflight } from "./navigation.ts";
import { findSigner, readSigned, type Signed } from "./signed-url.ts";
import { targetOf } from "./target.ts";
import { readVisitor, type Visitor } from "./visitor.ts";
import { WayPlanner } from "./way-planner.ts";

/** How long a cut stream waits for the news that its sandbox is gone: an exit report takes a few milliseconds. */
const LOSS_GRACE_MS = 500;
const MAX_PORT = 65_535;

const STOPPING: StreamError = { code: "unavailable", message: "The edge is restarting; try again." };

export interface EdgeConfig {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Shared with the nodes' proxies. */
  readonly nodeToken: string;
  /** Requests and upgraded connections at once, per sandbox; more get 429. */
  readonly maxConnectionsPerSandbox: number;
}

export interface EdgeDeps {
  readonly log: Log;
  readonly routes: EdgeRoutes;
  /** Absent: paused sandboxes stay paused. */
  readonly wake?: Wake;
  /** Those that a signed URL may wake. */
  readonly sleepers?: () => Promise<readonly Sleeper[]>;
}

interface EdgeStats {
  /** Open connections of clients. */
  readonly clients: number;
  /** Requests and upgraded connections under way. */
  readonly active: number;
  /** Open connections towards sandboxes and nodes, idle ones included. */
  readonly upstream: number;
}

export interface Edge {
  readonly url: string;
  readonly port: number;
  stats(): EdgeStats;
  stop(): Promise<void>;
}

interface Wakers {
  readonly wake: Wake;
  readonly sleepers: () => Promise<readonly Sleeper[]>;
}

/** One request on its way through the checks. */
interface Visit {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  readonly upgrade: UpgradeRequest | undefined;
  readonly visitor: Visitor;
}

export async function startEdge(config: EdgeConfig, deps: EdgeDeps): Promise<Edge> {
  const { log, routes } = deps;
  const forwarder = new Forwarder({ lossGraceMs: LOSS_GRACE_MS, now: () => performance.now() });
  const planner = new WayPlanner(config.nodeToken);
  // Refused here, at the start, rather than at the first request.
  line("Svc-Node-Token", config.nodeToken);
  const inbound = await listen(config.host, config.port, { refusalHeaders: CORS_LINES, handle });
  const forget = routes.onRemove((executionId, _sandboxId, reason) => forwarder.close(executionId, endingOf(reason)));
  log.info({ host: config.host, port: inbound.port }, "edge listening");

  function handle(request: ClientRequest, response: ClientResponse, upgrade?: UpgradeRequest): void {
    const visitor = readVisitor(request.url, request.rawHeaders);
    if (visitor === undefined) {
      refuse(request, response, { is: "text", status: 400, message: "Invalid request target" });
      return;
    }
    const visit: Visit = { request, response, upgrade, visitor };
    const target = targetOf(visitor);
    switch (target.is) {
      case "sandbox":
        visitSandbox(visit, target.sandboxId, target.port);
        return;
      case "none":
        visitSigned(visit, target.message);
        return;
      case "bad":
        refuse(request, response, { is: "text", status: target.status, message: target.message });
        return;
    }
  }

  function visitSigned(visit: Visit, message: string): void {
    const { request, response, visitor } = visit;
    const signed = readSigned(request.method, visitor.path);
    if (signed === undefined) {
      refuse(request, response, { is: "text", status: 400, message });
      return;
    }
    const route = findSigner(signed, routes.running());
    if (route !== undefined) visitRoute(visit, route, ENVD_PORT);
    else if (deps.wake === undefined || deps.sleepers === undefined)
      refuse(request, response, { is: "invalid_signature" });
    else void wakeSigner(visit, signed, { wake: deps.wake, sleepers: deps.sleepers });
  }

  async function wakeSigner(visit: Visit, signed: Signed, { wake, sleepers }: Wakers): Promise<void> {
    const { request, response } = visit;
    try {
      const sleeper = findSigner(signed, await sleepers());
      if (sleeper !== undefined) await wakeAndVisit(visit, sleeper.sandboxId, { port: ENVD_PORT, wake });
      else if (!response.destroyed) refuse(request, response, { is: "invalid_signature" });
    } catch (error) {
      log.warn({ err: error }, "sleeping sandboxes could not be read");
      if (!response.destroyed) refuse(request, response, { is: "invalid_signature" });
    }
  }

  function visitSandbox(visit: Visit, sandboxId: string, port: number): void {
    const { request, response, visitor } = visit;
    // Before the lookup: the answer says nothing about the sandbox.
    if (port === ENVD_PORT && isInternalRoute(visitor.path)) {
      send(request, response, { is: "internal_route", sandboxId, path: pathOnly(visitor.path) });
      return;
    }
    const route = routes.lookup(sandboxId);
    if (route !== undefined && shownState(route.state) === "running") visitRoute(visit, route, port);
    else if (deps.wake === undefined) refuse(request, response, { is: "not_found", sandboxId });
    else void wakeAndVisit(visit, sandboxId, { port, wake: deps.wake });
  }

  async function wakeAndVisit(
    visit: Visit,
    sandboxId: string,
    { port, wake }: { readonly port: number; readonly wake: Wake },
  ): Promise<void> {
    const { request, response } = visit;
    const left = new AbortController();
    const leave = () => left.abort(new Error("the client left"));
    response.once("close", leave);
    try {
      const result = await wake(sandboxId, port, tokensOf(visit), left.signal);
      if (response.destroyed || left.signal.aborted) return;
      if (result.is === "running") visitRoute(visit, result.route, port);
      else if (result.is === "denied")
        refuse(request, response, { is: "resume_denied", sandboxId, message: result.message });
      else refuse(request, response, { ...result, sandboxId });
    } catch (error) {
      log.warn({ err: error, sandboxId }, "waking for traffic failed");
      if (!response.destroyed) refuse(request, response, { is: "not_found", sandboxId });
    } finally {
      response.removeListener("close", leave);
    }
  }

  function visitRoute(visit: Visit, route: EdgeRoute, port: number): void {
    const { request, response, upgrade, visitor } = visit;
    const refusal = admission(route, port, visitor) ?? limit(route);
    if (refusal !== undefined) refuse(request, response, refusal);
    else forwarder.forward(planFor(visit, route, port), { request, response, upgrade });
  }

  function limit(route: EdgeRoute): Refusal | undefined {
    const connectionLimit = config.maxConnectionsPerSandbox;
    if (forwarder.active(route.executionId) < connectionLimit) return undefined;
    return { is: "too_many_connections", sandboxId: route.sandboxId, connectionLimit };
  }

  function planFor(visit: Visit, route: EdgeRoute, port: number): ForwardPlan {
    const { ways, host, drops } = planner.prepare(route, port);
    const { path } = visit.visitor;
    return {
      executionId: route.executionId,
      path,
      edits: { drops, host: host ?? visit.visitor.absoluteHost },
      // The original name travels with the request only, so it is not part of what is prepared.
      ways:
        host === undefined ? ways : ways.map((way) => ({ ...way, added: way.added + forwardedHost(visit.visitor) })),
      keepsBack: keepsNothing,
      framesErrors: true,
      refuse: (_response, failure) => failed(visit, route, port, failure),
    };
  }

  function failed(visit: Visit, route: EdgeRoute, port: number, failure: Failure): void {
    const { request, response } = visit;
    const { sandboxId } = route;
    switch (failure.is) {
      case "removed": {
        // The node knows another execution than we did: ours may have come in the meantime.
        const current = routes.lookup(sandboxId);
        const moved = current !== undefined && current.executionId !== route.executionId;
        if (moved && shownState(current.state) === "running" && !hasBody(request)) visitRoute(visit, current, port);
        else refuse(request, response, { is: "not_found", sandboxId });
        return;
      }
      case "closed":
        refuse(request, response, { is: "closed_port", sandboxId, port });
        return;
      case "bad_response":
        refuse(request, response, { is: "bad_response", sandboxId, port });
        return;
      case "unreachable":
        log.warn({ sandboxId, nodeId: route.nodeId }, "node proxy unreachable");
        refuse(request, response, { is: "node_unreachable", sandboxId });
        return;
      case "unforwardable":
        refuse(request, response, { is: "text", status: 501, message: failure.message });
        return;
    }
  }

  return {
    url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${inbound.port}`,
    port: inbound.port,
    stats: () => ({
      clients: inbound.connections,
      active: forwarder.activeTotal,
      upstream: forwarder.pools.size,
    }),
    async stop() {
      forget();
      const closed = inbound.close();
      await forwarder.stop(STOPPING);
      inbound.destroy();
      await closed;
    },
  };
}

function endingOf(reason: RemovalReason | undefined): StreamError {
  const message =
    reason === "paused"
      ? "The sandbox was paused while the request was in flight."
      : "The sandbox was killed or reached its end of life while the request was in flight.";
  return { code: "unavailable", message };
}

/** Whether this visitor may reach this port; undefined when it may. Pure. */
function admission(route: EdgeRoute, port: number, visitor: Visitor): Refusal | undefined {
  const { sandboxId } = route;
  if (port !== ENVD_PORT && !route.allowPublicTraffic) {
    const given = visitor.trafficTokens[0];
    if (given === undefined) return { is: "token_missing", sandboxId };
    const expected = route.trafficAccessToken ?? "";
    const valid = expected !== "" && visitor.trafficTokens.some(({ value }) => sameSecret(value, expected));
    if (!valid) return { is: "token_invalid", sandboxId, header: given.header };
  }
  // After the token: a stranger learns nothing about ports.
  return port < 1 || port > MAX_PORT ? { is: "closed_port", sandboxId, port } : undefined;
}

/** A refusal that a preflight never sees: the browser has to be let through to read the real answer. */
function refuse(request: ClientRequest, response: ClientResponse, refusal: Refusal): void {
  if (!isPreflight(request.method, request.rawHeaders)) {
    send(request, response, refusal);
    return;
  }
  const answer = preflightAnswer(headerValue(request.rawHeaders, "access-control-request-headers"));
  response.writeHead(answer.status, STATUS_CODES[answer.status] ?? "", [...answer.headers]);
  response.end();
}

function send(request: ClientRequest, response: ClientResponse, refusal: Refusal): void {
  const answer = answerFor(refusal, isNavigation(request.rawHeaders));
  // The client will not send the body it announced: its connection cannot carry another request.
  if (headerValue(request.rawHeaders, "expect") !== undefined) response.shouldKeepAlive = false;
  response.writeHead(answer.status, STATUS_CODES[answer.status] ?? "", [...answer.headers]);
  response.end(answer.body);
}

function tokensOf({ request, visitor }: Visit): WakeTokens {
  return {
    trafficAccessTokens: visitor.trafficTokens.map(({ value }) => value),
    envdAccessToken: headerValue(request.rawHeaders, "x-access-token"),
    signed: readSigned(request.method, visitor.path),
  };
}

function hasBody(request: ClientRequest): boolean {
  const { rawHeaders } = request;
  const length = headerValue(rawHeaders, "content-length");
  return headerValue(rawHeaders, "transfer-encoding") !== undefined || (length !== undefined && length !== "0");
}

function forwardedHost(visitor: Visitor): string {
  return `X-Forwarded-Host: ${visitor.hosts[0] ?? ""}\r\n`;
}

function pathOnly(path: string): string {
  return path.split(/[?#]/, 1)[0] ?? "";
}

function keepsNothing(): boolean {
  return false;
}
