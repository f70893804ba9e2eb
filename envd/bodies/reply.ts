/** Replies of envd's REST side: JSON, empty, or the error body `{ code, message }`. */

import type { ServerResponse } from "node:http";
import { AppError } from "../../shared/http/errors.ts";

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8", "Content-Length": bytes.length });
  response.end(bytes);
}

/** Aborts when the connection closes before the answer, because the client has left. */
export function untilClosed(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once("close", () => closed.abort(new AppError("bad_request", "the client has left")));
  return closed.signal;
}

/** Sends a status without a body. */
export function sendNothing(response: ServerResponse, status: number): void {
  response.writeHead(status, status === 204 || status === 304 ? {} : { "Content-Length": 0 });
  response.end();
}

/** Once the reply has begun, cuts the connection instead, so that the client does not take the reply for complete. */
export function sendError(response: ServerResponse, reason: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const error = AppError.from(reason);
  for (const name of ["Content-Encoding", "Content-Disposition", "ETag", "Last-Modified", "Accept-Ranges"])
    response.removeHeader(name);
  sendJson(response, error.status, { code: error.status, message: error.message });
}
