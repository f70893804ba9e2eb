/** CORS of the platform API: any origin, preflight before everything else, headers on errors too (wire-contract.md §0.6). */

import type { FastifyInstance } from "fastify";

const METHODS = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS";
const ALLOWED = [
  "Origin",
  "Content-Length",
  "Content-Type",
  "User-Agent",
  "Authorization",
  "X-API-Key",
  "X-Team-ID",
  "browser",
  "lang",
  "lang_version",
  "machine",
  "os",
  "package_version",
  "processor",
  "publisher",
  "release",
  "sdk_runtime",
  "system",
].join(", ");
const EXPOSED = [
  "X-Next-Token",
  "X-Total-Running",
  "X-Total-Count",
  "X-Request-ID",
  "X-E2B-Trace-ID",
  "X-Svc-Trace-ID",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
  "Retry-After",
].join(", ");
const PREFLIGHT_SECONDS = "7200";

export function addCors(server: FastifyInstance): void {
  server.addHook("onRequest", (request, reply, done) => {
    void reply.headers({
      "access-control-allow-origin": "*",
      "access-control-expose-headers": EXPOSED,
      "x-e2b-trace-id": request.id,
      "x-svc-trace-id": request.id,
    });
    if (request.method !== "OPTIONS") {
      done();
      return;
    }
    void reply
      .headers({
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": ALLOWED,
        "access-control-max-age": PREFLIGHT_SECONDS,
      })
      .status(204)
      .send();
  });
}
