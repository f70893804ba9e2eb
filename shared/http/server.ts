/** The fastify server of every program with an API: limits, the error body, and refusals before a handler runs. */

import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from "fastify";
import type { Log } from "../program/log.ts";
import { type Door, guard, isRefused, serverOptions } from "../tls/peers.ts";
import { logAcceptFailures } from "./connections/accept-failures.ts";
import { type ConnectionLimits, promote, type Rank } from "./connections/connection-limits.ts";
import { AppError, type ErrorCode, toBody } from "./errors.ts";
import { type BodyPace, closeGently, isUnread, pacedBody } from "./requests/body.ts";
import { shortFailure, wholeFailure } from "./requests/failure-facts.ts";
import { bodyError, readJson } from "./requests/json.ts";
import { KnownPaths } from "./requests/meant-path.ts";
import { traceRequests } from "./requests/spans.ts";

const MAX_BODY_BYTES = 1024 * 1024;
export const REQUEST_ID = "x-request-id";
/** Statuses of refusals before the caller is identified: they close the connection. */
const CLOSING: readonly number[] = [401, 408, 413];

/** Time limits for clients, milliseconds. */
export interface ServerLimits {
  /** For the head of a request, from the connection or its first byte on. */
  readonly headMs: number;
  /** For a whole request: as long as clients allow one upload to take. */
  readonly requestMs: number;
  readonly body: BodyPace;
  /** Idle time between two requests; longer than the keep-alive of the platform's client pools, so no request is cut. */
  readonly idleMs: number;
  /** Idle time on a connection that has not sent valid credentials. */
  readonly strangerIdleMs: number;
}

export interface ServerOptions extends Partial<ServerLimits> {
  /** Limits of connections; absent: derived from the descriptors. */
  readonly connections?: ConnectionLimits;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is believed, comma-separated. */
  readonly trustedProxies?: string;
  /** Absent: plain HTTP. */
  readonly door?: Door | undefined;
  /** Whether requests without a trace begin one that is recorded, where an operator collects spans. */
  readonly beginsTraces?: boolean;
}

const LIMITS: ServerLimits = {
  headMs: 15_000,
  requestMs: 3_600_000,
  body: { leastBytes: 10_240, everyMs: 10_000 },
  idleMs: 620_000,
  strangerIdleMs: 15_000,
};

/**
 * A fastify server whose refusals, unknown routes and crashes all send the one error body. It identifies caller and route
 * before it reads a byte of a body, and does not wait for a body that it will not read.
 */
export function createServer(log: Log, options: ServerOptions = {}): FastifyInstance {
  const {
    headMs,
    requestMs,
    body,
    idleMs,
    strangerIdleMs,
    connections,
    trustedProxies = "",
    door,
    beginsTraces = false,
  } = { ...LIMITS, ...options };
  // Widened once, here: a pino type would change every generic of the instance.
  const loggerInstance: FastifyBaseLogger = log;
  const http = {
    headersTimeout: headMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(headMs, 5_000),
  };
  // Fastify's types tell servers with TLS apart, and no handler needs that.
  const settings: FastifyServerOptions & { readonly https?: object } = {
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    trustProxy: trustedProxies === "" ? false : trustedProxies,
    keepAliveTimeout: idleMs,
    requestTimeout: requestMs,
    ...(door === undefined ? { http } : { https: { ...http, ...serverOptions(door) } }),
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    genReqId: (request) => requestId(request.headers[REQUEST_ID]),
    clientErrorHandler: refuseUnparsed,
    // A path that cannot be decoded or has an endless part is refused before any hook runs, so the CORS headers are set here.
    frameworkErrors: (error, request, reply) => {
      void sendError(error, request, reply.header("access-control-allow-origin", "*"));
    },
  };
  const server: FastifyInstance = Fastify(settings);
  const paths = new KnownPaths();
  knownPaths.set(server, paths);
  server.addHook("onRoute", ({ method, url }) => {
    for (const each of [method].flat()) paths.add(each, url);
  });
  traceRequests(server, beginsTraces);
  // SDKs send JSON chunked, without Content-Length, and DELETE with or without a body.
  readJson(server);
  server.setErrorHandler((error, request, reply) => sendError(bodyError(error, request), request, reply));
  server.setNotFoundHandler((request, reply) => sendError(noRoute(request), request, reply));
  boundBodies(server, body);
  if (door !== undefined) openDoor(server, door);
  // With TLS the end of the handshake makes a connection a client.
  const opened = door === undefined ? "connection" : "secureConnection";
  if (connections !== undefined) {
    server.server.on(opened, (socket: Socket) => void (socket.destroyed || connections.admit(socket)));
  }
  server.addHook("onListen", (done) => {
    logAcceptFailures(server.server, log);
    done();
  });
  server.addHook("onResponse", (request, _reply, done) => {
    if (!known.has(request.raw.socket)) request.raw.socket.setTimeout(strangerIdleMs);
    done();
  });
  return server;
}

function openDoor(server: FastifyInstance, door: Door): void {
  const tls = server.server as unknown as TlsServer;
  guard(tls, door);
  // What failed its handshake cannot be answered.
  tls.on("tlsClientError", (_error, socket) => socket.destroy());
  server.addHook("onRequest", (request, _reply, done) => {
    if (isRefused(request.raw.socket))
      done(new AppError("forbidden", "this server does not admit the caller's certificate"));
    else done();
  });
}

/** Connections on which a caller has sent valid credentials. */
const known = new WeakSet<Socket>();

/** Lets the connection be idle as long as the platform's clients keep theirs, and protects it from being closed for room. */
export function showedCredentials(request: FastifyRequest, rank: Exclude<Rank, "stranger">): void {
  known.add(request.raw.socket);
  promote(request.raw.socket, rank);
}

function boundBodies(server: FastifyInstance, pace: BodyPace): void {
  // Without this listener Node would answer 100, which asks for the body before the request has been checked.
  server.server.on("checkContinue", (request, response) => server.routing(request, response));
  server.addHook("preParsing", (request, reply, payload, done) => {
    if (request.is404) {
      done(noRoute(request));
      return;
    }
    if (request.headers.expect !== undefined) reply.raw.writeContinue();
    if (isUnread(request.raw)) done(null, pacedBody(request.raw, pace));
    else done(null, payload);
  });
  server.addHook("onSend", (request, reply, payload, done) => {
    if (isUnread(request.raw)) {
      reply.header("connection", "close");
      closeGently(request.raw.socket);
    }
    done(null, payload);
  });
}

/** Of each server, for the advice about a path that it does not have. */
const knownPaths = new WeakMap<FastifyInstance, KnownPaths>();

function noRoute(request: FastifyRequest): AppError {
  const path = pathOf(request);
  return new AppError("not_found", `no route ${request.method} ${path}${adviceFor(request, path)}`);
}

function adviceFor({ method, server }: FastifyRequest, path: string): string {
  // A base address that ends with a slash, before a path that begins with one.
  const single = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  if (single !== path) return `: it has a slash too many; did you mean ${single}?`;
  const meant = knownPaths.get(server)?.like(method, path);
  return meant === undefined ? "" : `: did you mean ${meant}?`;
}

function sendError(reason: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = AppError.from(reason);
  const failed = { method: request.method, path: pathOf(request) };
  const whole = wholeFailure(error, failed);
  // 500 is a fault of this program; 503 and 504 describe the cluster, 501 a missing feature.
  if (error.code === "internal") request.log.error(whole, "a request failed by an internal error");
  else if (error.status === 500 || error.status > 501) {
    const level = error.status === 500 ? "error" : "warn";
    request.log[level](shortFailure(error, failed), "could not serve a request");
    request.log.debug(whole, "details of a request that could not be served");
  } else request.log.debug(whole, "refused a request");
  if (CLOSING.includes(error.status) || request.is404) reply.header("connection", "close");
  if (error.retryAfterSeconds !== undefined) reply.header("retry-after", String(Math.ceil(error.retryAfterSeconds)));
  return reply
    .status(error.status)
    .header(REQUEST_ID, request.id)
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(toBody(error)));
}

/** Node's parser refuses some bytes before there is a request; they get the one error body too. */
function refuseUnparsed(error: Error & { readonly code?: string }, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { status, message, code } = unparsed(error.code);
  const body = JSON.stringify({ code: status, message, error_code: code });
  closeGently(socket);
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n` +
      "content-type: application/json; charset=utf-8\r\naccess-control-allow-origin: *\r\n" +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  socket.destroySoon();
}

function unparsed(code: string | undefined): { status: number; message: string; code: ErrorCode } {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return { status: 431, message: "request line or headers are too long", code: "bad_request" };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: 408, message: "the request did not arrive in time", code: "request_timeout" };
    default:
      return { status: 400, message: "not an HTTP request that can be understood", code: "bad_request" };
  }
}

// The path without its query, which may hold a signature.
function pathOf(request: FastifyRequest): string {
  return request.url.split("?", 1)[0] ?? "";
}

function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();
}
