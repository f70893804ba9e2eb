/** The HTTP server: limits, cross-origin headers; dispatches RPCs, routes and tunnels. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { AppError } from "../../shared/http/errors.ts";
import { sendError } from "../bodies/reply.ts";
import type { RpcHandler } from "../rpc/dispatch.ts";
import type { IdleMemory } from "../runtime/idle-memory.ts";
import type { Journal } from "../runtime/journal.ts";
import type { Access } from "./access.ts";
import { allowOrigins, answerPreflight } from "./cors.ts";
import { callRoute, type Routes } from "./routes.ts";
import { openTunnel } from "./tunnel.ts";

/** Longer than the proxies in front keep a connection, so that envd never closes one under a request. */
const IDLE_CONNECTION_MS = 640_000;
/** Time limit of a new connection's first headers. */
const FIRST_HEADERS_MS = 60_000;
const LARGEST_HEADERS_BYTES = 64 * 1024;
/** Node would otherwise check all connections every 30 s, and an idle sandbox must stay idle. */
const NEVER_CHECK_MS = 2 ** 31 - 1;

export interface ServerDeps {
  readonly routes: Routes;
  /** Resolves soon after the server listens. */
  readonly rpc: () => Promise<RpcHandler>;
  readonly access: Access;
  readonly journal: Journal;
  readonly idleMemory: Pick<IdleMemory, "touch">;
}

export function createHttpServer({ routes, rpc, access, journal, idleMemory }: ServerDeps): Server {
  const refuse = (request: IncomingMessage, response: ServerResponse, reason: unknown) => {
    const error = AppError.from(reason);
    if (error.code === "internal" && !request.socket.destroyed) report(journal, request, error);
    sendError(response, error);
    // The rest of the body is discarded; otherwise the client would never read the answer.
    request.resume();
  };

  const dispatch = async (request: IncomingMessage, response: ServerResponse) => {
    request.socket.setTimeout(0);
    allowOrigins(response);
    if (request.method === "OPTIONS") {
      answerPreflight(request, response);
    } else if (isRpc(request.url ?? "")) {
      const call = await rpc();
      await call(request, response, (caller) => access.client(caller));
    } else {
      await callRoute(routes, request, response);
    }
  };

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    idleMemory.touch();
    response.once("close", () => idleMemory.touch());
    dispatch(request, response).catch((error: unknown) => refuse(request, response, error));
  };

  const server = createServer(
    {
      maxHeaderSize: LARGEST_HEADERS_BYTES,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      headersTimeout: 0,
      requestTimeout: 0,
      connectionsCheckingInterval: NEVER_CHECK_MS,
      noDelay: true,
    },
    serve,
  );
  server.on("connection", limitFirstHeaders);
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void upgrade(request, socket, head, access);
  });
  return server;
}

/** Whether a request is for one of the two services, known method or not. */
function isRpc(url: string): boolean {
  return url.startsWith("/process.Process/") || url.startsWith("/filesystem.Filesystem/");
}

function limitFirstHeaders(socket: Socket): void {
  socket.setTimeout(FIRST_HEADERS_MS, () => socket.destroy());
}

async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, access: Access): Promise<void> {
  socket.on("error", () => socket.destroy());
  request.socket.setTimeout(0);
  try {
    if (request.method !== "POST" || request.url?.split("?", 1)[0] !== "/connect")
      throw new AppError("not_found", "this path cannot be upgraded");
    access.node(request);
    await openTunnel(request, socket, head);
  } catch (reason) {
    const error = AppError.from(reason);
    const body = JSON.stringify({ code: error.status, message: error.message });
    socket.end(
      `HTTP/1.1 ${error.status} Refused\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }
}

function report(journal: Journal, request: IncomingMessage, error: AppError): void {
  const { cause } = error;
  const fields = {
    method: request.method,
    path: request.url?.split("?", 1)[0],
    error: cause instanceof Error ? cause.message : error.message,
  };
  journal.write("error", "http", "request failed", fields);
}
