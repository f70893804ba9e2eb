/** Replies of envd's REST side: JSON, empty, or the error body `{ code, message }`. */

import type { ServerResponse } from "node:http";
import { AppError } from "../../shared/http/errors.ts";

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8", "Content-Length": bytes.length });
  response.end(bytes);
}

/** 204 and the like. */
export function sendNothing(response: ServerResponse, status: number): void {
  response.writeHead(status, status === 204 || status === 304 ? {} : { "Content-Length": 0 });
  response.end();
}

/** When the reply has begun it is too late for a status: the connection is cut, so that the reply is not taken as whole. */
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
