/** Dispatches every request that is not an RPC: finds the route, authorises the caller, calls the handler. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { EnvdPath } from "../../shared/agent-api/envd-routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import { readJson } from "../bodies/body.ts";
import { sendJson, sendNothing } from "../bodies/reply.ts";
import { composeFiles } from "../files/compose.ts";
import { downloadFile } from "../files/download.ts";
import { uploadFiles } from "../files/upload.ts";
import type { WatchHub } from "../filesystem/watch/watch-hub.ts";
import type { Initialiser } from "../init/init.ts";
import { parseInit, parseTrust } from "../init/init-request.ts";
import type { Session } from "../init/session.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { MemoryKills } from "../process/memory-kills.ts";
import type { Journal } from "../runtime/journal.ts";
import type { System } from "../system/system.ts";
import type { Access } from "./access.ts";
import { queryOf } from "./query.ts";

export interface RouteDeps {
  readonly session: Session;
  readonly access: Access;
  readonly system: System;
  readonly journal: Journal;
  readonly memoryKills: Pick<MemoryKills, "look">;
  readonly metrics: Metrics;
  readonly initialiser: Initialiser;
  readonly hub: WatchHub;
  /** Runs the code of first commands once through envd's own port, so that it is compiled. */
  readonly warm: (port: number) => Promise<void>;
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
}

type Route = (call: Call) => Promise<void> | void;

const LARGEST_INIT_BYTES = 4 * 1024 * 1024;
const MOST_LOG_ENTRIES = 5_000;

/** Path → method → route. GET's route serves HEAD. */
export type Routes = Readonly<Record<string, Readonly<Record<string, Route>>>>;

/** A path missing from the shared list does not compile: the edge has to know who may call it. */
type OwnRoutes = Readonly<Record<Exclude<EnvdPath, "/connect">, Readonly<Record<string, Route>>>>;

export function createRoutes(deps: RouteDeps): OwnRoutes {
  const { session, access, system, journal, memoryKills, metrics, initialiser, hub } = deps;

  const forNode =
    (route: Route): Route =>
    (call) => {
      access.node(call.request);
      return route(call);
    };
  const forClient =
    (route: Route): Route =>
    (call) => {
      access.client(call.request);
      return route(call);
    };
  const done =
    (work: (call: Call) => Promise<void>): Route =>
    async (call) => {
      await work(call);
      sendNothing(call.response, 204);
    };

  return {
    "/health": {
      GET: ({ response }) => {
        response.setHeader("Cache-Control", "no-store");
        sendNothing(response, 204);
      },
    },
    "/metrics": {
      GET: forClient(async ({ response }) => {
        response.setHeader("Cache-Control", "no-store");
        sendJson(response, 200, await metrics.read());
      }),
    },
    "/envs": { GET: forClient(({ response }) => sendJson(response, 200, session.globalVariables())) },
    "/files": {
      GET: async ({ request, response, query }) => {
        access.file(request, query, "read");
        await downloadFile(request, response, query, session);
      },
      POST: async ({ request, response, query }) => {
        access.file(request, query, "write");
        await uploadFiles(request, response, query, { session, system });
      },
    },
    "/files/compose": {
      POST: forClient(({ request, response, query }) => composeFiles(request, response, query, session)),
    },
    "/init": {
      POST: async ({ request, response }) => {
        const init = parseInit(await readJson(request, LARGEST_INIT_BYTES));
        access.init(request, init.settings.accessToken);
        if (init.controlToken !== undefined) access.rotate(request, init.controlToken);
        await initialiser.apply(init);
        // A restored container has a new cgroup, whose counter begins at zero.
        memoryKills.look();
        sendNothing(response, 204);
      },
    },
    "/ca-bundle": {
      PUT: forNode(async ({ request, response }) => {
        await initialiser.trust(parseTrust(await readJson(request, LARGEST_INIT_BYTES)));
        sendNothing(response, 204);
      }),
    },
    "/logs": {
      GET: forNode(({ response, query }) => {
        const limit = wholeNumber(query, "limit", 1_000);
        // No timer looks, because an idle sandbox runs none: the log is complete when it is read.
        memoryKills.look();
        sendJson(response, 200, journal.read(wholeNumber(query, "after", 0), Math.min(limit, MOST_LOG_ENTRIES)));
      }),
    },
    "/watches/suspend": {
      POST: forNode(
        done(() => {
          initialiser.keep();
          return hub.suspend();
        }),
      ),
    },
    "/watches/resume": { POST: forNode(done(() => hub.resume())) },
    "/warm": { POST: forNode(done(({ request }) => deps.warm(request.socket.localPort ?? 0))) },
  };
}

/** @throws {AppError} not_found; bad_request for a method the path does not have */
export async function callRoute(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? "";
  // A question mark behind the first one is a letter of the query.
  const mark = url.indexOf("?");
  const [path, search] = mark < 0 ? [url, ""] : [url.slice(0, mark), url.slice(mark + 1)];
  const methods = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (methods === undefined) throw new AppError("not_found", `no such path: ${path.slice(0, 200)}`);
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
  const route = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (route === undefined) {
    response.setHeader("Allow", Object.keys(methods).join(", "));
    throw new AppError("bad_request", `${path} does not know the method ${method.slice(0, 20)}`);
  }
  await route({ request, response, query: queryOf(search) });
}

function wholeNumber(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null || text === "") return fallback;
  if (!/^\d{1,15}$/.test(text)) throw new AppError("bad_request", `${name} must be a whole number`);
  return Number(text);
}
