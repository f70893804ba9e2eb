/** Answers of the egress process itself: plain text, marked by a header. */

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { UnresolvedError } from "./placeholders.ts";
import { Refusal, valuesOf } from "./request-head.ts";
import { UpstreamError, whyNoAnswer } from "./upstream.ts";

/** Header on answers that are not the destination's. */
const MARK = ["svc-egress", "refused"] as const;
/** How long an unwanted body is read, so that the answer arrives before the connection ends. */
const LINGER_MS = 2_000;

export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof UnresolvedError || error instanceof UpstreamError) return new Refusal(502, error.message);
  return new Refusal(502, `the destination failed: ${whyNoAnswer(error)}`);
}

/** 502 leaves the connection open; a client's fault ends it. */
export function answerRefusal(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const { status, message } = refusal;
  // The client got no 100 Continue: the next bytes may be its body or another request.
  const closes = status !== 502 || valuesOf(request.rawHeaders, "expect").length > 0;
  const body = `svc: ${message}\n`;
  const lines = ["Content-Type", "text/plain; charset=utf-8", "Content-Length", `${Buffer.byteLength(body)}`, ...MARK];
  response.sendDate = true;
  response.writeHead(status, STATUS_CODES[status] ?? "", closes ? [...lines, "Connection", "close"] : lines);
  response.write(body);
  request.resume();
  if (request.complete || !closes) {
    response.end();
    return;
  }
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LINGER_MS);
  request.once("end", end);
  request.once("close", end);
}

/** Answers on a bare socket: its bytes were not a request, or the request asked for another protocol. */
export function answerRaw(socket: Duplex, { status, message }: Refusal): void {
  const body = `svc: ${message}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n${MARK.join(": ")}\r\nConnection: close\r\n\r\n${body}`,
  );
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.resume();
}
