/**
 * The listening side of a proxy: Node's own strict parser, no limits on streams, one decision per request. Upgrades that
 * cannot be forwarded as such are handed back to the parser as the plain requests they also are.
 */

import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ClientRequest, Handler } from "./client.ts";
import { FrontConnection } from "./front-connection.ts";
import { headerValue } from "./raw-headers.ts";

const HEADERS_TIMEOUT_MS = 60_000;
/** Longer than the keep-alive of the clients we know, so that we never close under a request. */
const IDLE_TIMEOUT_MS = 620_000;
const KEEP_ALIVE_PROBE_MS = 60_000;
const MAX_HEADER_BYTES = 64 * 1024;
/** What a client may send behind an upgrade request before the answer is there. */
const MAX_EARLY_BYTES = 64 * 1024;

export interface InboundHandlers {
  readonly handle: Handler;
  /** Header lines (each ending in CRLF) of the answer to bytes that are not HTTP. */
  readonly refusalHeaders: string;
}

export interface Inbound {
  readonly port: number;
  /** Connections now open, upgraded ones included. */
  readonly connections: number;
  /** Stops accepting and closes idle connections; `destroy` closes the rest. */
  close(): Promise<void>;
  destroy(): void;
}

export async function listen(host: string, port: number, handlers: InboundHandlers): Promise<Inbound> {
  const fronts = new Map<Socket, FrontConnection>();
  const server = createServer({
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    noDelay: true,
    insecureHTTPParser: false,
  });
  server.timeout = 0;
  // Bounded by size already; a count would drop headers without a word.
  server.maxHeadersCount = 0;
  const parse = server.listeners("connection") as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    fronts.set(
      socket,
      new FrontConnection(socket, handlers.handle, () => parse.forEach((on) => on.call(server, socket))),
    );
    socket.once("close", () => fronts.delete(socket));
  });
  const handle = (request: IncomingMessage, response: ServerResponse) => handlers.handle(requestOf(request), response);
  server.on("request", handle);
  server.on("checkContinue", handle);
  server.on("checkExpectation", handle);
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, early: Buffer) => {
    if (isPlain(request))
      handBack(request, socket, early, () => parse.forEach((on) => on.call(server, socket as Socket)));
    else upgrade(request, socket, early, handlers);
  });
  server.on("clientError", (error, socket) => refuse(error, socket, handlers.refusalHeaders));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog: 4096 }, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  let closing: Promise<void> | undefined;
  return {
    port: address.port,
    get connections() {
      return fronts.size;
    },
    close() {
      closing ??= new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      for (const front of fronts.values()) front.closeIfIdle();
      return closing;
    },
    destroy() {
      for (const socket of fronts.keys()) socket.destroy();
    },
  };
}

/**
 * HTTP/2 over cleartext is not spoken here, and a request with a body has to be read by the parser: both are served as
 * if Upgrade had not been sent, which RFC 9110 §7.8 allows.
 */
function isPlain(request: IncomingMessage): boolean {
  const { rawHeaders } = request;
  const length = headerValue(rawHeaders, "content-length");
  if (length !== undefined && Number(length) !== 0) return true;
  if (headerValue(rawHeaders, "transfer-encoding") !== undefined) return true;
  return /^\s*h2c?\s*(,|$)/i.test(headerValue(rawHeaders, "upgrade") ?? "");
}

function handBack(request: IncomingMessage, socket: Duplex, early: Buffer, parse: () => void): void {
  const { rawHeaders } = request;
  let text = `${request.method ?? "GET"} ${request.url ?? "/"} HTTP/1.1\r\n`;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const lower = name.toLowerCase();
    if (lower !== "connection" && lower !== "upgrade" && lower !== "http2-settings") {
      text += `${name}: ${rawHeaders[at + 1] ?? ""}\r\n`;
    }
  }
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, "latin1"), early]));
  parse();
}

function upgrade(request: IncomingMessage, socket: Duplex, early: Buffer, handlers: InboundHandlers): void {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // Node has let go of the socket; until it is spliced, an error on it is only a client that left.
  const leave = () => socket.destroy();
  socket.on("error", leave);
  response.assignSocket(socket as Socket);
  response.once("finish", () => {
    response.detachSocket(socket as Socket);
    socket.end();
    // The client may go on sending; nobody reads it.
    (socket as Socket).destroySoon();
  });
  let kept: Buffer[] = early.length > 0 ? [early] : [];
  let keptBytes = early.length;
  const collect = (chunk: Buffer) => {
    kept.push(chunk);
    keptBytes += chunk.length;
    if (keptBytes > MAX_EARLY_BYTES) socket.pause();
  };
  // Reading is how a client that leaves is noticed.
  socket.on("data", collect);
  socket.on("end", leave);
  const protocol = headerValue(request.rawHeaders, "upgrade") ?? "";
  handlers.handle(requestOf(request), response, {
    protocol,
    socket,
    takeOver() {
      response.detachSocket(socket as Socket);
      socket.removeListener("data", collect);
      socket.removeListener("end", leave);
      socket.removeListener("error", leave);
      const bytes = Buffer.concat(kept);
      kept = [];
      return bytes;
    },
  });
}

function requestOf(request: IncomingMessage): ClientRequest {
  return {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    httpVersionMinor: request.httpVersionMinor,
    rawHeaders: request.rawHeaders,
    body: request,
  };
}

function refuse(error: NodeJS.ErrnoException, socket: Duplex, headers: string): void {
  // A response that has begun cannot be followed by another on the same request: cut it.
  const current: unknown = Reflect.get(socket, "_httpMessage");
  const begun = current instanceof ServerResponse && current.headersSent;
  if (!socket.writable || begun || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, text] = refusal(error.code);
  socket.end(
    `HTTP/1.1 ${status}\r\n${headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`,
  );
}

function refusal(code: string | undefined): [status: string, text: string] {
  if (code === "HPE_HEADER_OVERFLOW") return ["431 Request Header Fields Too Large", "Request headers are too large"];
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return ["408 Request Timeout", "Request headers took too long"];
  return ["400 Bad Request", "Malformed request"];
}
