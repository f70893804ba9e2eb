/**
 * The one port that clients on other machines reach: TLS, and behind it the servers of this program as they are. A connection of
 * HTTP/1.1 goes to the server that its name means, each stream of HTTP/2 to the one that its own authority means.
 */

import type { EventEmitter } from "node:events";
import { createServer as createHttp2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { createServer, type TLSSocket, type TlsOptions } from "node:tls";
import { carriedBy } from "../../http/connections/connection-limits.ts";
import { MAX_HEAD_BYTES } from "../limits.ts";
import { headText } from "../raw-headers.ts";
import { carry } from "./carry.ts";
import { innerConnection } from "./inner-socket.ts";
import { readStreamRequest } from "./stream-headers.ts";

const HANDSHAKE_MS = 10_000;
/** Connections that have not proved that they speak TLS. */
const MOST_IN_HANDSHAKE = 2048;
const KEEP_ALIVE_PROBE_MS = 60_000;
/** As the servers behind it let an idle connection be. */
const IDLE_MS = 620_000;

/** An entry counts 32 bytes beside its text (RFC 9113 §6.5.2), so only the size limits them: browsers send each cookie as one. */
const MOST_ENTRIES = MAX_HEAD_BYTES / 32;

const SESSION = {
  settings: { maxConcurrentStreams: 256, initialWindowSize: 2 ** 18, maxHeaderListSize: MAX_HEAD_BYTES },
  maxHeaderListPairs: MOST_ENTRIES,
  /** MiB. */
  maxSessionMemory: 32,
} as const;
/** Bytes that all streams of a session may send ahead: uploads from far away would crawl with the default of 64 KiB. */
const SESSION_WINDOW = 2 ** 22;

/** By the code of OpenSSL's errors: the bytes begin like a request of HTTP, or like one to a proxy. */
const PLAIN_REQUESTS: ReadonlySet<string> = new Set(["ERR_SSL_HTTP_REQUEST", "ERR_SSL_HTTPS_PROXY_REQUEST"]);
const ADVICE = "This port speaks HTTPS: begin the address with https://\n";
/** The answer to a request without TLS. Node closes the connection right after it. */
const NO_TLS =
  headText(400, "Bad Request", [
    "Content-Type",
    "text/plain; charset=utf-8",
    "Content-Length",
    `${ADVICE.length}`,
    "Connection",
    "close",
  ]) + ADVICE;

/** What the port shows: a certificate for all names, PEM. */
interface Shown {
  readonly certificate: string;
  readonly key: string;
}

export interface FrontOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly shown: {
    readonly current: Shown;
    /** Calls the listener after each change, until the returned function is called. */
    onReplaced(listener: (next: Shown) => void): () => void;
  };
  /** Gives a connection to the server that the name means; the name is in lower case, and empty where a client names none. */
  readonly serve: (name: string, connection: Socket) => void;
  /** Called for each connection whose handshake has ended; false: it was closed. */
  readonly admits: (socket: Socket) => boolean;
}

export interface Front {
  readonly port: number;
  /** Stops accepting, and lets streams under way end. */
  close(): Promise<void>;
  destroy(): void;
}

export async function openFront(options: FrontOptions): Promise<Front> {
  const { shown, serve } = options;
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const carriers = new WeakMap<object, Socket>();
  const streams = createHttp2Server(SESSION);
  const server = createServer({
    ...contextOf(shown.current),
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: HANDSHAKE_MS,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    noDelay: true,
  } as TlsOptions);
  /** By the address and port that the connection is from. */
  const inHandshake = new Map<string, Socket>();

  server.on("connection", (socket: Socket) => {
    if (inHandshake.size >= MOST_IN_HANDSHAKE) {
      socket.destroy();
      return;
    }
    const from = comesFrom(socket);
    inHandshake.set(from, socket);
    sockets.add(socket);
    socket.once("close", () => {
      inHandshake.delete(from);
      sockets.delete(socket);
    });
  });
  server.on("secureConnection", (socket: TLSSocket & { readonly servername?: unknown }) => {
    inHandshake.delete(comesFrom(socket));
    socket.on("error", ignore);
    if (!options.admits(socket)) return;
    if (socket.alpnProtocol !== "h2") {
      serve(nameOf(typeof socket.servername === "string" ? socket.servername : ""), socket);
      return;
    }
    // Node makes the session within this call.
    streams.once("session", (session) => carriers.set(session, socket));
    streams.emit("connection", socket);
  });
  server.on("tlsClientError", ({ code }: NodeJS.ErrnoException, socket) => {
    // What failed its handshake otherwise cannot be answered.
    if (PLAIN_REQUESTS.has(code ?? "")) inHandshake.get(comesFrom(socket))?.write(NO_TLS, "latin1");
    socket.destroy();
  });

  streams.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.on("error", ignore);
    session.setLocalWindowSize(SESSION_WINDOW);
    session.setTimeout(IDLE_MS, () => session.close());
  });
  streams.on("sessionError", ignore);
  const onStream = (stream: ServerHttp2Stream, _headers: object, _flags: number, rawHeaders: readonly string[]) => {
    stream.on("error", ignore);
    if (isTooLong(rawHeaders)) {
      stream.respond({ ":status": 431, "content-type": "text/plain; charset=utf-8" });
      stream.end("Request headers are too large\n");
      return;
    }
    const asked = readStreamRequest(rawHeaders, !stream.endAfterHeaders);
    const carrier = stream.session === undefined ? undefined : carriers.get(stream.session);
    if (asked === undefined || carrier === undefined) {
      stream.respond({ ":status": 400, "content-type": "text/plain; charset=utf-8" });
      stream.end("a stream needs a method, a path, and one host\n");
      return;
    }
    const { remoteAddress, remotePort, localAddress, localPort } = carrier;
    const { near, far } = innerConnection({ remoteAddress, remotePort, localAddress, localPort });
    carriedBy(far, carrier);
    serve(nameOf(asked.authority), far);
    carry(stream, asked, near);
  };
  // The types do not know the headers as they came.
  (streams as EventEmitter).on("stream", onStream);

  const forget = shown.onReplaced((next) => server.setSecureContext(contextOf(next)));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: options.host, port: options.port, backlog: 4096 }, () => {
      server.removeListener("error", reject);
      // A connection that could not be accepted, as when no descriptor is free, must not end the program.
      server.on("error", ignore);
      resolve();
    });
  });
  let closing: Promise<void> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      forget();
      closing ??= new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions) session.close();
      return closing;
    },
    destroy() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Node keeps the limit of the settings only once the client has confirmed them: some bytes of HPACK may be megabytes until then. */
function isTooLong(rawHeaders: readonly string[]): boolean {
  return rawHeaders.reduce((bytes, text) => bytes + text.length, 0) > MAX_HEAD_BYTES;
}

function contextOf({ certificate, key }: Shown): TlsOptions {
  return { cert: certificate, key, minVersion: "TLSv1.2" };
}

function comesFrom({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** The name in a host, without its port. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
}

/** "close" follows each error, and ends what there was. */
function ignore(): void {}
