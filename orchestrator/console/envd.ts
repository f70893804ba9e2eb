/**
 * Passes requests for a sandbox's processes and files to its envd, with the token that the console's page never gets. Both
 * bodies flow at the pace of the slower side, so a terminal that is not read holds its program up.
 */

import type { Readable } from "node:stream";
import { callbackify } from "node:util";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Dispatcher, Pool } from "undici";
import { AppError } from "../../shared/http/errors.ts";
import { showedCredentials } from "../../shared/http/server.ts";
import { within } from "../../shared/program/deadline.ts";
import { ENVD_PORT } from "../../shared/proxy/hop-contract.ts";
import type { NextHop } from "../../shared/proxy/sending/forward-plan.ts";
import type { Auth } from "../access/auth.ts";
import type { EdgeRoute, EdgeRoutingTable } from "../edge/sandbox-lookup.ts";
import type { UpstreamPlanner } from "../edge/upstream-planner.ts";
import { notFound } from "../lifecycle/not-found.ts";
import { endedAtOf } from "../lifecycle/record-state.ts";
import type { SandboxStore } from "../store/sandboxes/sandboxes.ts";

export interface EnvdDeps {
  readonly sandboxes: Pick<SandboxStore, "get">;
  readonly routes: EdgeRoutingTable;
  readonly planner: UpstreamPlanner;
}

/** Whoever may change sandboxes may run programs in them. */
const ROUTE = {
  method: "POST",
  path: "/sandboxes/{sandboxID}/envd",
  summary: "Processes and files of a sandbox",
  tag: "Sandboxes",
  access: "project",
  status: 200,
} as const;

const CALLS = [
  "process.Process/List",
  "process.Process/Start",
  "process.Process/Connect",
  "process.Process/SendInput",
  "process.Process/Update",
  "process.Process/SendSignal",
  "filesystem.Filesystem/ListDir",
  "filesystem.Filesystem/MakeDir",
  "filesystem.Filesystem/Move",
  "filesystem.Filesystem/Remove",
];

const DIAL_LIMIT_MS = 10_000;
/**
 * Seconds after which envd sends something on a stream on which nothing happens. Proxies often cut a connection that is silent for
 * a minute, and the page takes one for lost then (console/src/base/silence.ts).
 */
const KEEPALIVE_S = "20";
/** Silence in which a stream's two sides are still there: envd sends keepalives more often. */
const SILENCE_MS = 300_000;

type Params = { readonly sandboxID: string };

/** The connections to an execution of a sandbox. */
interface Reached {
  readonly executionId: string;
  /** By where it is. */
  readonly pools: Map<string, Pool>;
}

export function addEnvd(server: FastifyInstance, deps: EnvdDeps, auth: Pick<Auth, "project">): void {
  const reached = new Map<string, Reached>();

  // No packet has to tell that a sandbox was paused, rewound or moved: its streams would stay open, and silent.
  function leave(sandboxId: string, executionId: string): void {
    const left = reached.get(sandboxId);
    if (left?.executionId !== executionId) return;
    reached.delete(sandboxId);
    for (const pool of left.pools.values()) void pool.destroy();
  }
  deps.routes.onRemove((executionId, sandboxId) => leave(sandboxId, executionId));

  function poolOf(route: EdgeRoute): Pool {
    const { sandboxId, executionId } = route;
    const before = reached.get(sandboxId);
    if (before !== undefined && before.executionId !== executionId) leave(sandboxId, before.executionId);
    const { pools } = reached.get(sandboxId) ?? { pools: new Map<string, Pool>() };
    reached.set(sandboxId, { executionId, pools });
    const place = `${route.proxyUrl} ${route.address} ${route.sameHost}`;
    const known = pools.get(place);
    if (known !== undefined) return known;
    const { nextHops } = deps.planner.prepare(route, ENVD_PORT);
    const pool = new Pool("http://envd.invalid", {
      connections: 64,
      headersTimeout: 0,
      bodyTimeout: SILENCE_MS,
      connect: (_target, done) => {
        callbackify(() => dial(nextHops))((error, socket) => (error === null ? done(null, socket) : done(error, null)));
      },
    });
    pools.set(place, pool);
    return pool;
  }

  /** @throws {AppError} sandbox_not_found, sandbox_ended, conflict */
  async function routeOf(sandboxId: string, projectId: string): Promise<EdgeRoute> {
    const record = await deps.sandboxes.get(sandboxId);
    if (record === undefined || record.projectId !== projectId) throw notFound(sandboxId);
    if (endedAtOf(record) !== undefined) throw new AppError("sandbox_ended", `sandbox '${sandboxId}' has ended`);
    const route = deps.routes.lookup(sandboxId);
    if (route === undefined || route.held === true)
      throw new AppError(
        "conflict",
        `sandbox '${sandboxId}' is not running: resume it to reach its processes and files`,
      );
    return route;
  }

  async function pass(request: FastifyRequest, reply: FastifyReply, path: string): Promise<FastifyReply> {
    const { id } = await auth.project(ROUTE.access, request, ROUTE, reply);
    showedCredentials(request, "known");
    const { sandboxID } = request.params as Params;
    const route = await routeOf(sandboxID, id);
    const left = new AbortController();
    reply.raw.once("close", () => reply.raw.writableFinished || left.abort());
    const answer = await ask(poolOf(route), {
      method: request.method,
      path,
      headers: {
        "x-access-token": route.envdAccessToken,
        "keepalive-ping-interval": KEEPALIVE_S,
        ...headersOf(request),
        ...pairs(deps.planner.prepare(route, ENVD_PORT).nextHops.at(-1)?.added ?? []),
      },
      body: request.method === "GET" ? null : ((request.body as Readable | undefined) ?? request.raw),
      signal: left.signal,
    });
    if (answer.statusCode === 401) {
      await answer.body.dump();
      // To the page this status would mean that its own session has ended.
      throw new AppError("node_unreachable", `the envd of sandbox '${sandboxID}' has refused the platform's token`);
    }
    const { "content-length": length, etag } = answer.headers;
    if (typeof etag === "string") void reply.header("etag", etag);
    if (typeof length === "string") void reply.header("content-length", length);
    // A stream: nginx holds answers back otherwise, and a terminal shows nothing.
    else void reply.header("x-accel-buffering", "no");
    // What a sandbox says of its bytes decides nothing: they are a file to store, or data that the page's script reads.
    return reply
      .status(answer.statusCode)
      .header("content-disposition", "attachment")
      .type("application/octet-stream")
      .send(answer.body);
  }

  // A separate fastify context, because only its routes take a body of any type as a stream.
  void server.register((streams, _options, done) => {
    streams.removeAllContentTypeParsers();
    streams.addContentTypeParser("*", (_request, body, parsed) => parsed(null, body));
    const base = "/sandboxes/:sandboxID/envd";
    for (const call of CALLS) streams.post(`${base}/${call}`, (request, reply) => pass(request, reply, `/${call}`));
    const files = (request: FastifyRequest, reply: FastifyReply) =>
      pass(request, reply, `/files?${new URLSearchParams({ path: pathIn(request) }).toString()}`);
    streams.get(`${base}/files`, files);
    streams.post(`${base}/files`, files);
    done();
  });
}

/** The first hop that can be dialled: the container itself, or its node's proxy. */
async function dial(hops: readonly NextHop[]) {
  const failures: unknown[] = [];
  for (const hop of hops) {
    try {
      return await within(DIAL_LIMIT_MS, (limit) => hop.dial(limit));
    } catch (error) {
      failures.push(error);
    }
  }
  throw new AggregateError(failures, "neither the sandbox nor its node can be reached");
}

/** @throws {AppError} node_unreachable */
async function ask(pool: Pool, request: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  try {
    return await pool.request(request);
  } catch (cause) {
    throw new AppError("node_unreachable", "the sandbox's envd cannot be reached at the moment", { cause });
  }
}

/** The headers of the call itself: neither the cookie nor what the browser says about itself leaves the platform. */
function headersOf({ headers }: FastifyRequest): Record<string, string> {
  const passed = ["if-match", "content-type", "content-length", "connect-protocol-version", "connect-timeout-ms"];
  const given = passed.map((name) => [name, headers[name]] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}

/** @param list name, value, name, value, … */
function pairs(list: readonly string[]): Record<string, string> {
  return Object.fromEntries(list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ""]] : [])));
}

function pathIn({ query }: FastifyRequest): string {
  const { path } = query as { readonly path?: unknown };
  if (typeof path === "string" && path.startsWith("/")) return path;
  throw new AppError("bad_request", "query field 'path' must be an absolute path");
}
