/** How a connection ends before its time: with RST where its other side was cut, else as an orderly client or server ends. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** How long a client may take to read the rest of an answer that has broken off. */
const REST_LIMIT_MS = 2_000;

/** Resets the connection if possible, else closes it. Unsent bytes are lost. */
export function cut(socket: Duplex): void {
  // The system resets no connection whose end has been sent: Node would keep it open. A socket of TLS is known by a property,
  // because loading `node:tls` costs every envd two megabytes, with OpenSSL.
  const resettable = socket instanceof Socket && !("encrypted" in socket) && !socket.writableEnded;
  if (resettable && !socket.destroyed) socket.resetAndDestroy();
  else socket.destroy();
}

/** The peer of the socket has reset it. */
export function wasReset(socket: Duplex): boolean {
  const code = errorCode(socket.errored);
  return code === "ECONNRESET" || code === "EPIPE";
}

function errorCode(error: NodeJS.ErrnoException | null): string | undefined {
  return error?.code;
}

/**
 * Ends an answer that has lost its rest: the client gets what there is, the status first, and then the end of the
 * connection. @param framed false: the end of the connection is the end of the body, which would look complete, so the
 * connection is reset
 */
export function breakOff(request: IncomingMessage, response: ServerResponse, framed: boolean): void {
  const { socket } = response;
  if (socket === null || socket.destroyed || !response.headersSent) {
    response.destroy();
    return;
  }
  if (!framed) {
    cut(socket);
    return;
  }
  response.flushHeaders();
  const limit = setTimeout(() => response.destroy(), REST_LIMIT_MS);
  response.once("close", () => clearTimeout(limit));
  // A close with an unread body behind it would reset the connection, and the client would lose the status.
  if (!request.complete) {
    request.resume();
    socket.end();
  } else socket.destroySoon();
}
