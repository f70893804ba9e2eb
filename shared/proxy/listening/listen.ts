/**
 * The listening side of a proxy: Node's strict parser, one decision per request, a limit on all requests that wait.
 * Upgrades that cannot be forwarded as such are handed back to the parser as the plain requests they also are.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { type Door, guard, isRefused, serverOptions } from "../../tls/peers.ts";
import { MAX_HEAD_BYTES } from "../limits.ts";
import { announcesBody, headerValue } from "../raw-headers.ts";
import { type ExchangeHandler, PlainClient } from "./client.ts";
import { plainHead } from "./hand-back.ts";
import { refuseConnect, refuseMalformed } from "./malformed.ts";
import { RequestQueue } from "./request-queue.ts";
import { MAX_UPGRADE_BODY_BYTES, openUpgrading } from "./upgrading.ts";

/** Time limit of a head, from the first byte or from the connection's beginning. */
const HEADERS_TIMEOUT_MS = 60_000;
/** Longer than the keep-alive of known clients, so that no request is cut. */
const IDLE_TIMEOUT_MS = 620_000;
const KEEP_ALIVE_PROBE_MS = 60_000;

export interface ListenOptions {
  readonly handle: ExchangeHandler;
  /** Name, value, name, value, … of the answer to bytes that are not HTTP. */
  readonly refusalHeaders: readonly string[];
  /** Called for each new connection; false closes it at once. */
  readonly admits?: (socket: Socket) => boolean;
  /** Absent: plain HTTP. */
  readonly door?: Door | undefined;
}

export interface Inbound {
  readonly port: number;
  /** Connections now open, upgraded ones included. */
  readonly connections: number;
  /** Serves a connection that another port has accepted. */
  accept(connection: Socket): void;
  /** Stops accepting and closes idle connections; `destroy` closes the rest. */
  close(): Promise<void>;
  destroy(): void;
}

export async function listen(host: string, port: number, options: ListenOptions): Promise<Inbound> {
  const sockets = new Set<Socket>();
  const queue = new RequestQueue();
  /** Writes the answer to a request that was handed back. */
  const answers = new WeakMap<Socket, (response: ServerResponse) => void>();
  const { door } = options;
  const settings = {
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Uploads may take long; the exchange that reads a body ends it when it stalls.
    requestTimeout: 0,
    maxHeaderSize: MAX_HEAD_BYTES,
    noDelay: true,
    insecureHTTPParser: false,
  };
  const secured = door === undefined ? undefined : openSecured(settings, door);
  const server: Server = secured?.server ?? createServer(settings);
  // With TLS a connection can be read from the end of its handshake on.
  const opened = secured === undefined ? "connection" : "secureConnection";
  server.timeout = 0;
  // No limit of the count, which would drop headers silently: the size is limited already.
  server.maxHeadersCount = 0;

  const handBack = (request: IncomingMessage, socket: Socket, answered: boolean, behind: Buffer) => {
    socket.unshift(Buffer.concat([plainHead(request, answered), behind]));
    server.emit(opened, socket);
    socket.resume();
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (isRefused(socket)) return;
    request.on("error", ignore);
    response.on("error", ignore);
    const write = answers.get(socket);
    if (write !== undefined) answers.delete(socket);
    queue.take(socket, response, () => {
      if (write === undefined) options.handle(new PlainClient(request, response));
      else write(response);
    });
  };
  server.on(opened, (socket: Socket) => {
    if (socket.destroyed || sockets.has(socket)) return;
    if (options.admits?.(socket) === false) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    // Node's server takes its own listener away from a connection that asks to switch or for CONNECT.
    socket.on("error", ignore);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", onRequest);
  server.on("checkContinue", onRequest);
  server.on("checkExpectation", onRequest);
  server.on("upgrade", (request: IncomingMessage, socket: Socket, early: Buffer) => {
    // The client sent bytes before the answer to its last request: it would be unclear which request they belong to.
    if (socket.destroyed || queue.current(socket) !== undefined) socket.destroy();
    else if (isPlain(request)) handBack(request, socket, false, early);
    else {
      const answer = (write: (response: ServerResponse) => void) => {
        answers.set(socket, write);
        handBack(request, socket, true, Buffer.alloc(0));
      };
      const bodyBytes = Number(headerValue(request.rawHeaders, "content-length") ?? 0);
      const protocol = headerValue(request.rawHeaders, "upgrade") ?? "";
      openUpgrading({ request, socket, protocol, early, bodyBytes, watches: true, onWhole: options.handle, answer });
    }
  });
  server.on("connect", (_request, socket: Socket) => {
    if (queue.current(socket) !== undefined) socket.destroy();
    else refuseConnect(socket, options.refusalHeaders);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) =>
    refuseMalformed(error, socket as Socket, queue.current(socket as Socket), options.refusalHeaders),
  );

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog: 4096 }, () => {
      server.removeListener("error", reject);
      // A connection that could not be accepted, as when no descriptor is free, must not end the program.
      server.on("error", ignore);
      resolve();
    });
  });
  let closing: Promise<void> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return sockets.size;
    },
    accept: (connection) => void server.emit(opened, connection),
    close() {
      closing ??= new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      return closing;
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
      for (const socket of secured?.inHandshake ?? []) socket.destroy();
    },
  };
}

interface Secured {
  readonly server: SecureServer;
  /** Connections that are no clients yet. */
  readonly inHandshake: ReadonlySet<Socket>;
}

function openSecured(settings: object, door: Door): Secured {
  const server = createSecureServer({ ...settings, ...serverOptions(door) });
  const inHandshake = new Set<Socket>();
  guard(server, door);
  server.on("connection", (socket: Socket) => {
    inHandshake.add(socket);
    socket.once("close", () => inHandshake.delete(socket));
  });
  // What failed its handshake cannot be answered.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return { server, inHandshake };
}

/** Protocols that clients offer without being asked, and go on without: HTTP/2 (JDK, curl), TLS (Apache HttpClient). */
const ONLY_OFFERED = /^\s*(?:h2c?|tls\/[\d.]+)\s*(?:,|$)/i;

/**
 * This proxy speaks neither HTTP/2 nor TLS on an open connection, and the bytes of a protocol begin behind the body of the request
 * for it, which only a length tells without reading the body as HTTP: such requests are served as if Upgrade had not been sent,
 * which RFC 9110 §7.8 allows.
 */
function isPlain({ rawHeaders }: IncomingMessage): boolean {
  if (ONLY_OFFERED.test(headerValue(rawHeaders, "upgrade") ?? "")) return true;
  if (!announcesBody(rawHeaders)) return false;
  const length = headerValue(rawHeaders, "content-length");
  const isShort = length !== undefined && Number(length) <= MAX_UPGRADE_BODY_BYTES;
  return !isShort || ["transfer-encoding", "expect"].some((name) => headerValue(rawHeaders, name) !== undefined);
}

/** Errors need no handling, because "close" follows and ends the exchange. */
function ignore(): void {}
