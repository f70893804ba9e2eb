/** Cross-origin access: any page may talk to a sandbox; its token decides what it may do. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { sendNothing } from "../bodies/reply.ts";

const METHODS = "HEAD, GET, POST, PUT, PATCH, DELETE";
const EXPOSED = [
  "Location",
  "Cache-Control",
  "X-Content-Type-Options",
  "Content-Disposition",
  "Connect-Content-Encoding",
  "Grpc-Status",
  "Grpc-Message",
  "Grpc-Status-Details-Bin",
].join(", ");
const MAX_AGE_SECONDS = 7200;

/** Headers of every reply, errors included. */
export function allowOrigins(response: ServerResponse): void {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Expose-Headers", EXPOSED);
}

/** Needs no token: browsers send none with a preflight. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  const asked = request.headers["access-control-request-headers"];
  response.setHeader("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
  response.setHeader("Access-Control-Allow-Methods", METHODS);
  response.setHeader("Access-Control-Allow-Headers", asked ?? "*");
  response.setHeader("Access-Control-Max-Age", MAX_AGE_SECONDS);
  sendNothing(response, 204);
}
