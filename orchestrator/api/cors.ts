/** CORS of the platform API: any origin, preflight before everything else, headers on errors too. */

import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
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
  // What other programs in a page add to its requests: a stream of events that goes on, tracing, caches.
  "Last-Event-ID",
  "X-Request-ID",
  "traceparent",
  "tracestate",
  "baggage",
  "sentry-trace",
  "Cache-Control",
  "Pragma",
  "If-Match",
  "If-None-Match",
  // SDKs add them to calls of the API too.
  "E2b-Sandbox-Id",
  "E2b-Sandbox-Port",
];
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
];
const PREFLIGHT_SECONDS = 7200;

/** Must be registered before any other hook: preflights carry no key, and refusals need these headers too. */
export function addCors(server: FastifyInstance): void {
  server.addHook("onRequest", (request, reply, done) => {
    void reply.headers({ "x-e2b-trace-id": request.id, "x-svc-trace-id": request.id });
    done();
  });
  void server.register(cors, {
    origin: "*",
    methods: METHODS,
    allowedHeaders: ALLOWED,
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_SECONDS,
    // Programs other than browsers send OPTIONS without the headers of a preflight.
    strictPreflight: false,
  });
}
