/** Each request of a server as a span of its trace, where spans are kept. */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { areSpansKept, keepSpan, sinceEpoch } from "../../program/tracing/spans.ts";
import { inTrace, TRACEPARENT, type Trace, traceFrom } from "../../program/tracing/trace.ts";

/** Tools ask for these all the time, and nobody looks for them. */
const UNRECORDED: readonly string[] = ["/health", "/livez", "/readyz", "/metrics"];
/** Parameters of paths that name what a request is about; no secret is among them. */
const SUBJECTS: Readonly<Record<string, string>> = {
  sandboxID: "svc.sandbox.id",
  sandboxId: "svc.sandbox.id",
  executionId: "svc.execution.id",
};

interface Begun {
  readonly trace: Trace;
  /** By `performance.now()`. */
  readonly at: number;
}

/**
 * Puts each request into the caller's trace, before any other hook: its handler and its refusals too.
 * @param begins whether requests without a trace begin one that is recorded, where spans are kept
 */
export function traceRequests(server: FastifyInstance, begins: boolean): void {
  const begun = new WeakMap<FastifyRequest, Begun>();
  server.addHook("onRequest", (request, _reply, done) => {
    const isRecorded = begins && areSpansKept() && !UNRECORDED.includes(request.routeOptions.url ?? "");
    const trace = traceFrom(request.headers[TRACEPARENT], isRecorded);
    if (areSpansKept()) begun.set(request, { trace, at: performance.now() });
    inTrace(trace, done);
  });
  server.addHook("onResponse", (request, reply, done) => {
    const start = begun.get(request);
    if (start !== undefined) keepSpan({ ...spanOf(request, reply.statusCode), ...timesOf(start) });
    done();
  });
}

function spanOf(request: FastifyRequest, status: number) {
  const route = request.routeOptions.url ?? "no route";
  const params = Object.entries((request.params ?? {}) as Record<string, unknown>);
  const subjects = params.flatMap(([name, value]) => {
    const attribute = SUBJECTS[name];
    return attribute === undefined || typeof value !== "string" ? [] : [[attribute, value] as const];
  });
  return {
    name: `${request.method} ${route}`,
    kind: "server" as const,
    attributes: {
      "http.request.method": request.method,
      "http.route": route,
      "http.response.status_code": status,
      ...Object.fromEntries(subjects),
    },
    hasFailed: status >= 500,
  };
}

function timesOf({ trace, at }: Begun) {
  return { trace, begun: sinceEpoch(at), ms: performance.now() - at };
}
