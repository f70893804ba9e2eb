/** Answers of the proxy itself. The connection ends after them, because its next bytes may be a body that is not read. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { announcesBody, headerValue } from "../raw-headers.ts";

/** How long an unwanted body is read, so that the answer arrives before the connection ends. */
const LINGER_MS = 2_000;

export interface ProxyAnswer {
  readonly status: number;
  readonly reason: string;
  /** Name, value, name, value, … including `Content-Length` where there is a body. */
  readonly headers: readonly string[];
  readonly body: string;
}

export function answerAndClose(request: IncomingMessage, response: ServerResponse, answer: ProxyAnswer): void {
  response.writeHead(answer.status, answer.reason, [...answer.headers, "Connection", "close"]);
  const { rawHeaders } = request;
  // A client that waits for 100 does not send its body.
  if (!announcesBody(rawHeaders) || request.complete || headerValue(rawHeaders, "expect") !== undefined) {
    response.end(answer.body);
    return;
  }
  response.write(answer.body === "" ? Buffer.alloc(0) : answer.body);
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
