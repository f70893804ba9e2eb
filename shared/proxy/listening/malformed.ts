/** Answers a client whose bytes are not an HTTP request, and ends the connection. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ClientError, refusedMethod, unknownMethod } from "./unknown-method.ts";

const LINGER_MS = 2_000;

/**
 * @param current the response being written on this connection; it is finished first, and nothing follows it
 * @param headers header lines, each ending in CRLF
 */
export function refuseMalformed(
  error: ClientError,
  socket: Socket,
  current: ServerResponse | undefined,
  headers: string,
): void {
  // A client that ends its side in the middle of a request has disconnected.
  if (error.code === "ECONNRESET" || error.code === "HPE_INVALID_EOF_STATE" || !socket.writable) {
    socket.destroy();
    return;
  }
  if (current !== undefined) {
    current.once("close", () => socket.destroySoon());
    return;
  }
  refuseRaw(socket, refusal(error), headers);
}

/** Answers CONNECT, which Node's parser does not carry as a request: nothing behind it is read. */
export function refuseConnect(socket: Socket, headers: string): void {
  refuseRaw(
    socket,
    ["501 Not Implemented", "The method CONNECT cannot be forwarded: use the sandbox's address"],
    headers,
  );
}

function refuseRaw(socket: Socket, [status, text]: Refusal, headers: string): void {
  socket.end(
    `HTTP/1.1 ${status}\r\n${headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`,
  );
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

type Refusal = readonly [status: string, text: string];

function refusal(error: ClientError): Refusal {
  const { code } = error;
  const method = unknownMethod(error);
  if (method !== undefined) return ["501 Not Implemented", refusedMethod(method)];
  if (code === "HPE_INVALID_VERSION" || code === "HPE_PAUSED_H2_UPGRADE")
    return ["505 HTTP Version Not Supported", "This address speaks HTTP/1.1 only"];
  if (code === "HPE_HEADER_OVERFLOW") return ["431 Request Header Fields Too Large", "Request headers are too large"];
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return ["408 Request Timeout", "Request headers took too long"];
  return ["400 Bad Request", "Malformed request"];
}
