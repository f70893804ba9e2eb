/** The HTTP server: limits, cross-origin headers, errors. Plain node:http, because every sandbox holds it in memory. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Contexts } from "../contexts/contexts.ts";
import { Refusal } from "./refusal.ts";
import { route } from "./routes.ts";

/** Longer than the proxies in front keep a connection, so that the server never closes one under a request. */
const IDLE_CONNECTION_MS = 640_000;
const HEADERS_MS = 60_000;
/** A client that vanished without a word is noticed by probes of its connection. */
const PROBE_MS = 30_000;
/** Node would otherwise check all connections every 30 s, and an idle sandbox must stay idle. */
const NEVER_CHECK_MS = 2 ** 31 - 1;

/** @param report takes the name of an error that is this server's own fault */
export function createHttpServer(contexts: Contexts, report: (error: unknown) => void): Server {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    request.socket.setTimeout(0);
    allowOrigins(request, response);
    if (request.method === "OPTIONS") {
      response.writeHead(204).end();
      return;
    }
    try {
      await route(contexts, request, response);
    } catch (error) {
      refuse(request, response, error);
      if (!(error instanceof Refusal) && !request.destroyed) report(error);
    }
  };
  const server = createServer(
    {
      keepAliveTimeout: IDLE_CONNECTION_MS,
      headersTimeout: 0,
      requestTimeout: 0,
      connectionsCheckingInterval: NEVER_CHECK_MS,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MS,
    },
    (request, response) => void answer(request, response),
  );
  server.on("connection", (socket) => socket.setTimeout(HEADERS_MS, () => socket.destroy()));
  return server;
}

function allowOrigins(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("access-control-allow-origin", "*");
  if (request.method !== "OPTIONS") return;
  response.setHeader("access-control-allow-methods", "*");
  response.setHeader("access-control-allow-headers", request.headers["access-control-request-headers"] ?? "*");
  response.setHeader("access-control-max-age", "7200");
}

function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    // The client must not take a broken run for a complete one.
    response.destroy();
    return;
  }
  const { status, contentType, body } = error instanceof Refusal ? error : new Refusal(500, "internal error");
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) });
  response.end(body);
  // Otherwise the client would never read the answer.
  request.resume();
}
