/** Answers a client whose bytes are not an HTTP request, and ends the connection. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { sendRaw } from "./answer.ts";
import { hasOtherVersion, requestFault } from "./request-fault.ts";
import { type ClientError, refusedMethod, unknownMethod } from "./unknown-method.ts";

/** Connections that have got their refusal. */
const refused = new WeakSet<Socket>();

/**
 * @param current the response being written on this connection. Where its request is whole, it is finished first, and nothing
 *   follows it; where the bytes are a part of its body, no server can get the rest, and the exchange ends.
 * @param headers name, value, name, value, …
 */
export function refuseMalformed(
  error: ClientError,
  socket: Socket,
  current: ServerResponse | undefined,
  headers: readonly string[],
): void {
  // A client that ends its side in the middle of a request has disconnected.
  const hasLeft = error.code === "ECONNRESET" || error.code === "HPE_INVALID_EOF_STATE";
  // Each packet behind the fault is an error again. A close with unread bytes would reset the connection, and the client lose the answer.
  if (!hasLeft && refused.has(socket)) return;
  if (hasLeft || !socket.writable) {
    socket.destroy();
    return;
  }
  if (current?.req.complete === true) {
    current.once("close", () => socket.destroySoon());
    return;
  }
  if (current?.headersSent === true) {
    socket.destroySoon();
    return;
  }
  refuseRaw(socket, refusal(error), headers);
}

/** Answers CONNECT, which Node's parser does not carry as a request: nothing behind it is read. */
export function refuseConnect(socket: Socket, headers: readonly string[]): void {
  refuseRaw(socket, [501, "The method CONNECT cannot be forwarded: use the sandbox's address"], headers);
}

function refuseRaw(socket: Socket, [status, body]: Refusal, headers: readonly string[]): void {
  refused.add(socket);
  const about = ["Content-Type", "text/plain; charset=utf-8", "Content-Length", `${body.length}`];
  sendRaw(socket, { status, headers: [...headers, ...about], body });
}

type Refusal = readonly [status: number, text: string];

function refusal(error: ClientError): Refusal {
  const { code } = error;
  const method = unknownMethod(error);
  if (method !== undefined) return [501, refusedMethod(method)];
  if (hasOtherVersion(error)) return [505, "This address speaks HTTP/1.1 only"];
  if (code === "HPE_HEADER_OVERFLOW") return [431, "Request headers are too large"];
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return [408, "Request headers took too long"];
  const fault = requestFault(error);
  return [400, fault === undefined ? "Malformed request" : `Malformed request: ${fault}`];
}
