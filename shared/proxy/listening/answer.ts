/** Answers of the proxy itself. The connection ends after most of them, because its next bytes may be a body that is not read. */

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { announcesBody, headerValue, headText } from "../raw-headers.ts";

/** How long an unwanted body is read, so that the answer arrives before the connection ends. */
const LINGER_MS = 2_000;

export interface ProxyAnswer {
  readonly status: number;
  /** Absent: the usual one of the status. */
  readonly reason?: string;
  /** Name, value, name, value, … including `Content-Length` where there is a body. */
  readonly headers: readonly string[];
  readonly body: string;
  /** The connection may carry further requests; the rest of this one's body is read. */
  readonly keepsOpen?: boolean;
}

/** Answers a request that Node's server has read. */
export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: ProxyAnswer): void {
  const { status, reason = STATUS_CODES[status] ?? "", headers, body, keepsOpen = false } = answer;
  response.sendDate = true;
  response.writeHead(status, reason, keepsOpen ? [...headers] : [...headers, "Connection", "close"]);
  const { rawHeaders } = request;
  if (keepsOpen) request.resume();
  // A client that waits for 100 does not send its body.
  if (keepsOpen || !announcesBody(rawHeaders) || request.complete || headerValue(rawHeaders, "expect") !== undefined) {
    response.end(body);
    return;
  }
  response.write(body === "" ? Buffer.alloc(0) : body);
  response.flushHeaders();
  // A close with unread bytes would reset the connection, and the client would lose the answer.
  const end = () => {
    clearTimeout(timer);
    if (!response.writableEnded) response.end();
  };
  const timer = setTimeout(end, LINGER_MS);
  request.once("end", end);
  request.once("close", end);
  request.resume();
}

/** Answers on a bare socket: its bytes were not a request, or the request asked for another protocol. */
export function sendRaw(
  socket: Duplex,
  { status, reason = STATUS_CODES[status] ?? "", headers, body }: ProxyAnswer,
): void {
  const head = headText(status, reason, [...headers, "Connection", "close"]);
  socket.end(Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)]));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.resume();
}
