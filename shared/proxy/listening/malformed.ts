/** Answers a client whose bytes are not an HTTP request, and ends the connection. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

const LINGER_MS = 2_000;

/**
 * @param current the response being written on this connection; it is finished first, and nothing follows it
 * @param headers header lines, each ending in CRLF
 */
export function refuseMalformed(
  error: NodeJS.ErrnoException,
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
  const [status, text] = refusal(error.code);
  socket.end(
    `HTTP/1.1 ${status}\r\n${headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`,
  );
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

function refusal(code: string | undefined): [status: string, text: string] {
  if (code === "HPE_HEADER_OVERFLOW") return ["431 Request Header Fields Too Large", "Request headers are too large"];
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return ["408 Request Timeout", "Request headers took too long"];
  return ["400 Bad Request", "Malformed request"];
}
