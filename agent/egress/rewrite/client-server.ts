/** The HTTP server that reads the requests of one intercepted connection, as strictly as the rewriter needs it. */

import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { MAX_HEAD_BYTES } from "../../../shared/proxy/limits.ts";

/** Limit between an answer and the end of the next head. */
export const IDLE_LIMIT_MS = 120_000;

export function clientServer(): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    // The rewriter's own answer to a missing Host says more than Node's.
    requireHostHeader: false,
    insecureHTTPParser: false,
    keepAliveTimeout: IDLE_LIMIT_MS,
  });
  // No limit: Node would leave out further headers, and every header must be checked.
  server.maxHeadersCount = 0;
  return server;
}

/** The end of a client's sending side, which the server learns of late. */
export interface ClientEnd {
  /** Call when an answer has been sent: the server learns of the end if nothing is being answered any more. */
  answered(): void;
  /** Call when the server no longer reads the socket. */
  release(): void;
}

/**
 * Lets the server read the requests of the socket. Node's server ends a connection as soon as the client has ended its
 * sending side. Such a client still wants the answers to its whole requests: while `answering` is true, the server does not
 * learn of the end.
 */
export function readRequests(server: Server, socket: Socket, answering: () => boolean): ClientEnd {
  const others = new Set(socket.listeners("end"));
  server.emit("connection", socket);
  const serverEnds = socket.listeners("end").filter((listener) => !others.has(listener)) as (() => void)[];
  let ended = false;
  const passEnd = () => {
    if (!ended || answering()) return;
    ended = false;
    for (const listener of serverEnds) listener.call(socket);
  };
  const onEnd = () => {
    ended = true;
    passEnd();
  };
  for (const listener of serverEnds) socket.off("end", listener);
  socket.once("end", onEnd);
  return {
    answered: passEnd,
    release: () => void socket.off("end", onEnd),
  };
}
