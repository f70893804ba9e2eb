/**
 * The HTTP entrance to sandboxes: finds the sandbox and port of a request, makes every check, and forwards it. Answers
 * the edge makes itself come from `answers.ts`.
 */

import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { addressReader } from "../../shared/http/connections/client-address.ts";
import { type ConnectionLimits, promote } from "../../shared/http/connections/connection-limits.ts";
import type { Log } from "../../shared/program/log.ts";
import { ENVD_PORT } from "../../shared/proxy/hop-contract.ts";
import type { ClientSide } from "../../shared/proxy/listening/client.ts";
import { listen } from "../../shared/proxy/listening/listen.ts";
import { announcesBody } from "../../shared/proxy/raw-headers.ts";
import { AS_A_PROXY } from "../../shared/proxy/sending/as-a-proxy.ts";
import type { Failure, ForwardPlan } from "../../shared/proxy/sending/forward-plan.ts";
import { Forwarder } from "../../shared/proxy/sending/forwarder.ts";
import { shownState } from "../../shared/states/sandbox-state.ts";
import { admission, standing } from "./admission.ts";
import { CORS, type Refusal } from "./answers/answers.ts";
import { refusalFor } from "./answers/failures.ts";
import { isPreflight } from "./answers/navigation.ts";
import { unaddressedAnswer } from "./answers/root.ts";
import { endingOf, STOPPING } from "./answers/stream-endings.ts";
import { isInternalRoute } from "./internal-routes.ts";
import { Moves } from "./moves/moves.ts";
import { refuse, send } from "./refuse.ts";
import {
  type AutoResume,
  type EdgeRoute,
  type EdgeRoutingTable,
  type FindSandbox,
  OrchestratorAway,
  type PausedSandbox,
} from "./sandbox-lookup.ts";
import { readSigned } from "./signed-url.ts";
import { createSigners, type FoundSandbox, WRONG_SIGNATURE, WRONG_TOKEN, type Wrong } from "./signers.ts";
import { targetOf } from "./target.ts";
import { forRequest, type NodeAccess, UpstreamPlanner } from "./upstream-planner.ts";
import { pathOnly, readVisitor, schemeTeller, tokensOf, type Visitor } from "./visitor.ts";

/**
 * How long a cut stream waits for the report that its sandbox ended. A report takes a few milliseconds, on a busy node a second, and of a
 * first process that SIGKILL ended a second and a half. A client whose sandbox lives learns that much later that its connection was lost.
 */
const LOSS_GRACE_MS = 2_000;
/** A drain, a failed pause and a second move may follow each other; an execution that ended by itself is never found again. */
const MOST_AGAIN = 3;
/** Between two tries to reach a node. */
const NODE_LOOK_MS = 200;

const keepsNothing = () => false;

export interface EdgeConfig {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** URL of the API's documentation, for people who open the bare address. */
  readonly docsUrl?: () => string | undefined;
  /** The token that the edge sends to a node's proxy. */
  readonly nodeToken: (nodeId: string) => string;
  /** How a node's `https` address is met. Absent: by its host name and the system's authorities. */
  readonly meeting?: NodeAccess["meeting"];
  /** Requests and upgraded connections at once, per sandbox; more get 429. */
  readonly maxConnectionsPerSandbox: number;
  /** How long a request waits for a node's proxy that takes no connection, as while its agent is restarted. Absent: not at all. */
  readonly nodeWaitMs?: number;
}

export interface EdgeDeps {
  readonly log: Log;
  readonly routes: EdgeRoutingTable;
  /** Most client connections; absent: derived from the limit of descriptors. */
  readonly connections?: ConnectionLimits;
  /** Proxies whose `X-Forwarded-For` the edge believes; absent: none. */
  readonly isProxy?: (address: string) => boolean;
  /** Absent: paused sandboxes stay paused. */
  readonly autoResume?: AutoResume;
  /**
   * Whether the routing table has every removal; absent: it has. Otherwise containers are not dialled by their address, and where
   * a node does not have an execution, the store is asked where its sandbox is.
   */
  readonly hasEveryRemoval?: () => boolean;
  /** Absent: a request that its sandbox may have got before it was paused or moved is not sent again. */
  readonly find?: FindSandbox;
  /** Paused sandboxes that a signed URL may resume. */
  readonly pausedSandboxes?: () => Promise<readonly PausedSandbox[]>;
}

interface EdgeStats {
  /** Open client connections. */
  readonly clients: number;
  /** Requests and upgraded connections under way. */
  readonly active: number;
  /** Open connections to sandboxes and nodes, idle ones included. */
  readonly upstream: number;
}

export interface Edge {
  readonly url: string;
  readonly port: number;
  /** Serves a connection that the port for clients on other machines has accepted. */
  accept(connection: Socket): void;
  stats(): EdgeStats;
  stop(): Promise<void>;
}

interface Resume {
  readonly port: number;
  readonly autoResume: AutoResume;
  /** The execution whose node cannot be reached. `unsent`: it got nothing of the request. */
  readonly unreached?: { readonly executionId: string; readonly unsent: boolean };
}

/** One request while the checks run. */
interface Visit {
  readonly client: ClientSide;
  readonly visitor: Visitor;
  /** How often its sandbox was looked up again, because it was not where its route led. */
  readonly again: number;
  /** When its node was first not reached, by the monotonic clock; absent: it was. */
  readonly unreachedAt?: number;
}

export async function startEdge(config: EdgeConfig, deps: EdgeDeps): Promise<Edge> {
  const { log, routes, hasEveryRemoval = () => true } = deps;
  const { nodeWaitMs = 0 } = config;
  const forwarder = new Forwarder({ lossGraceMs: LOSS_GRACE_MS });
  const planner = new UpstreamPlanner({
    token: config.nodeToken,
    meeting: config.meeting,
    hasEveryRemoval,
  });
  const moves = new Moves(deps.find, log);
  const clientAddress = addressReader(deps.isProxy);
  const tellsScheme = schemeTeller(deps.isProxy);
  const signers = createSigners({
    routes,
    pausedSandboxes: async () => (await deps.pausedSandboxes?.()) ?? [],
    now: Date.now,
  });
  const inbound = await listen(config.host, config.port, {
    refusalHeaders: CORS,
    handle,
    admits: (socket) => deps.connections?.admit(socket) ?? true,
  });
  const forget = routes.onRemove((executionId, _sandboxId, reason) => forwarder.close(executionId, endingOf(reason)));
  log.info({ host: config.host, port: inbound.port }, "edge listening");

  function handle(client: ClientSide): void {
    const visitor = readVisitor(client.request.url ?? "", client.request.rawHeaders);
    if (visitor === undefined) {
      refuse(client, { is: "text", status: 400, message: "Invalid request target" });
      return;
    }
    const visit: Visit = { client, visitor, again: 0 };
    const target = targetOf(visitor);
    switch (target.is) {
      case "sandbox":
        visitSandbox(visit, target.sandboxId, target.port);
        return;
      case "none":
        visitUnaddressed(visit, target.message);
        return;
      case "bad":
        refuse(client, { is: "text", status: target.status, message: target.message });
        return;
    }
  }

  /** Neither host nor headers name a sandbox: a signature may, or a token. */
  function visitUnaddressed(visit: Visit, message: string): void {
    const { client, visitor } = visit;
    const { method = "", rawHeaders } = client.request;
    const signed = readSigned(method, visitor.path);
    const [token, ...others] = new Set(visitor.envdTokens);
    const named = signed !== undefined || (token !== undefined && others.length === 0);
    if (!named)
      refuse(client, unaddressedAnswer(client.request, { path: visitor.path, message, docsUrl: config.docsUrl?.() }));
    // A preflight carries no secret that the answer needs, and its method was not signed.
    else if (isPreflight(method, rawHeaders)) refuse(client, { is: "invalid_signature" });
    else if (signed !== undefined) void visitFound(visit, (address) => signers.find(signed, address), WRONG_SIGNATURE);
    else void visitFound(visit, (address) => signers.findHolder(token ?? "", address), WRONG_TOKEN);
  }

  /** Visits envd of the sandbox that a signature or a token has named. */
  async function visitFound(visit: Visit, find: (address: string) => FoundSandbox, wrong: Wrong): Promise<void> {
    const { client, visitor } = visit;
    const found = await find(clientAddress(client.request)).catch((error: unknown) => {
      log.warn({ err: error }, "could not read the paused sandboxes");
      return error instanceof OrchestratorAway ? ({ is: "away" } as const) : ({ is: "wrong" } as const);
    });
    if (client.gone) return;
    if (found.is === "away") refuse(client, { is: "unasked" });
    else if (found.is === "later") refuse(client, { ...found, is: wrong.tooMany });
    else if (found.is === "wrong") refuse(client, wrong.refusal);
    else if (isInternalRoute(visitor.path)) {
      const sandboxId = found.is === "running" ? found.route.sandboxId : found.sandboxId;
      send(client, { is: "internal_route", sandboxId, path: pathOnly(visitor.path) });
    } else if (found.is === "running") visitRoute(visit, found.route, ENVD_PORT);
    else if (deps.autoResume === undefined) refuse(client, wrong.refusal);
    else await resumeAndVisit(visit, found.sandboxId, { port: ENVD_PORT, autoResume: deps.autoResume });
  }

  function visitSandbox(visit: Visit, sandboxId: string, port: number): void {
    const { client, visitor } = visit;
    // Before the look-up: the answer says nothing about the sandbox.
    if (port === ENVD_PORT && isInternalRoute(visitor.path)) {
      send(client, { is: "internal_route", sandboxId, path: pathOnly(visitor.path) });
      return;
    }
    const route = routes.lookup(sandboxId);
    if (route !== undefined && shownState(route.state) === "running") visitRoute(visit, route, port);
    else if (deps.autoResume === undefined) refuse(client, { is: "not_found", sandboxId });
    else void resumeAndVisit(visit, sandboxId, { port, autoResume: deps.autoResume });
  }

  async function resumeAndVisit(
    visit: Visit,
    sandboxId: string,
    { port, autoResume, unreached }: Resume,
  ): Promise<void> {
    const { client } = visit;
    const left = new AbortController();
    const leave = () => left.abort(new Error("the client left"));
    client.onGone(leave);
    try {
      const result = await autoResume(sandboxId, port, tokensOf(client.request, visit.visitor), left.signal);
      if (client.gone || left.signal.aborted) return;
      if (result.is === "running" && result.route.executionId === unreached?.executionId)
        unreachable(visit, sandboxId, { port, unsent: unreached.unsent });
      else if (result.is === "running") visitRoute(visit, result.route, port);
      else if (result.is === "denied") refuse(client, { is: "resume_denied", sandboxId, message: result.message });
      else refuse(client, { ...result, sandboxId });
    } catch (error) {
      log.warn({ err: error, sandboxId }, "auto-resume failed");
      if (!client.gone) refuse(client, { is: "unasked", sandboxId });
    }
  }

  function visitRoute(visit: Visit, route: EdgeRoute, port: number): void {
    const { client, visitor } = visit;
    const refusal = admission(route, port, visitor) ?? standing(route) ?? limit(route);
    if (refusal !== undefined) {
      refuse(client, refusal);
      return;
    }
    promote(client.request.socket, "known");
    forwarder.forward(planFor(visit, route, port), client);
  }

  function limit(route: EdgeRoute): Refusal | undefined {
    const connectionLimit = config.maxConnectionsPerSandbox;
    if (forwarder.active(route.executionId) < connectionLimit) return undefined;
    return { is: "too_many_connections", sandboxId: route.sandboxId, connectionLimit };
  }

  function planFor(visit: Visit, route: EdgeRoute, port: number): ForwardPlan {
    const prepared = planner.prepare(route, port);
    const { path, hosts, absoluteHost } = visit.visitor;
    const isSecure = port !== ENVD_PORT && tellsScheme(visit.client.request);
    const { nextHops, drops } = forRequest(prepared, { originalHost: hosts[0] ?? "", isSecure });
    return {
      executionId: route.executionId,
      path,
      edits: { drops, host: prepared.host ?? absoluteHost },
      nextHops,
      ...AS_A_PROXY,
      keepsBack: keepsNothing,
      framesErrors: true,
      refuse: (_client, failure) => failed(visit, route, port, failure),
    };
  }

  /** The request has not reached its sandbox: a newer route may have arrived since, or has to be asked for. */
  function visitAgain(visit: Visit, route: EdgeRoute, port: number): void {
    const { client } = visit;
    const { sandboxId } = route;
    const current = routes.lookup(sandboxId);
    const isSame = current?.executionId === route.executionId;
    const sentBody = announcesBody(client.request.rawHeaders);
    const { autoResume } = deps;
    const next = { ...visit, again: visit.again + 1 };
    const isNewer = current !== undefined && !isSame && shownState(current.state) === "running";
    if (isNewer && !sentBody) visitRoute(next, current, port);
    // Where every removal is known, a route that is still there leads to a sandbox that has ended by itself.
    else if (autoResume === undefined || next.again > MOST_AGAIN || (isSame && hasEveryRemoval()))
      refuse(client, { is: "not_found", sandboxId });
    // The node may have read some of the body.
    else if (sentBody) void refuseAgain(client, sandboxId);
    else void resumeAndVisit(next, sandboxId, { port, autoResume });
  }

  /** The sandbox is on that node still, which may come back in a moment: its agent is restarted, as for an upgrade. */
  function unreachable(visit: Visit, sandboxId: string, { port, unsent }: { port: number; unsent: boolean }): void {
    const waits = unsent && visit.unreachedAt === undefined && nodeWaitMs > 0;
    if (waits) void visitLater({ ...visit, unreachedAt: performance.now() }, sandboxId, port);
    else refuse(visit.client, { is: "node_unreachable", sandboxId });
  }

  async function visitLater(visit: Visit, sandboxId: string, port: number): Promise<void> {
    await sleep(NODE_LOOK_MS);
    if (!visit.client.gone) visitSandbox(visit, sandboxId, port);
  }

  /** Its node cannot be reached: where another orchestrator may have moved the sandbox, the records say where it is now. */
  function visitElsewhere(visit: Visit, route: EdgeRoute, port: number, unsent: boolean): void {
    const { client } = visit;
    const { sandboxId, executionId } = route;
    const { autoResume } = deps;
    if (unsent && performance.now() - (visit.unreachedAt ?? Number.NEGATIVE_INFINITY) < nodeWaitMs) {
      void visitLater(visit, sandboxId, port);
      return;
    }
    const next = { ...visit, again: visit.again + 1 };
    const mayRepeat = unsent || !announcesBody(client.request.rawHeaders);
    if (autoResume === undefined || !mayRepeat || next.again > MOST_AGAIN || hasEveryRemoval())
      unreachable(visit, sandboxId, { port, unsent });
    else void resumeAndVisit(next, sandboxId, { port, autoResume, unreached: { executionId, unsent } });
  }

  async function refuseAgain(client: ClientSide, sandboxId: string): Promise<void> {
    const refusal = await moves.withoutBody(sandboxId);
    if (!client.gone) refuse(client, refusal);
  }

  /** The sandbox was taken from its node after it may have got the request. */
  async function visitMoved(visit: Visit, route: EdgeRoute, port: number): Promise<void> {
    const { client, again } = visit;
    const next = await moves.after(client.request, route);
    if (client.gone) return;
    if (next.is === "refused") refuse(client, next.refusal);
    else if (again < MOST_AGAIN) visitRoute({ ...visit, again: again + 1 }, next.route, port);
    else refuse(client, { is: "transitioning", sandboxId: route.sandboxId });
  }

  function failed(visit: Visit, route: EdgeRoute, port: number, failure: Failure): void {
    const { sandboxId, nodeId } = route;
    if (failure.is === "removed") {
      const stopped = moves.stopped(visit.client.request, sandboxId, failure.underWay);
      if (stopped !== undefined) refuse(visit.client, stopped);
      else if (failure.underWay) void visitMoved(visit, route, port);
      else visitAgain(visit, route, port);
    } else if (failure.is === "unreachable") {
      if (visit.unreachedAt === undefined) log.warn({ sandboxId, nodeId }, "node proxy unreachable");
      visitElsewhere(visit, route, port, failure.unsent);
    } else refuse(visit.client, refusalFor(failure, { sandboxId, port }));
  }

  return {
    url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${inbound.port}`,
    port: inbound.port,
    accept: (connection) => inbound.accept(connection),
    stats: () => ({
      clients: inbound.connections,
      active: forwarder.activeTotal,
      upstream: forwarder.connections.size,
    }),
    async stop() {
      forget();
      moves.stop();
      const closed = inbound.close();
      await forwarder.stop(STOPPING);
      inbound.destroy();
      await closed;
    },
  };
}
