/** Spans of requests go to a collector, with a real server, a real client and a real receiver of OTLP. */

import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Type } from "typebox";
import { expect, onTestFinished, test } from "vitest";
import { createTimed } from "../../../orchestrator/sandboxes/timed.ts";
import { connect } from "../../../shared/http/client.ts";
import { contract } from "../../../shared/http/contract.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";
import { areSpansKept, withSpans } from "../../../shared/program/tracing/spans.ts";
import { freePort } from "../../support/peers/listening.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const SECRET = "svc_0123456789abcdef";

interface Received {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly status: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}
interface Export {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Received[] }[] }[];
}

const routes = contract({
  pause: {
    method: "POST",
    path: "/sandboxes/{sandboxID}/pause",
    summary: "Calls the next program, in two parts",
    tag: "Test",
    access: "none",
    params: Type.Object({ sandboxID: Type.String() }),
    query: Type.Object({ key: Type.Optional(Type.String()) }),
    status: 204,
  },
  start: { method: "GET", path: "/start", summary: "Is called", tag: "Test", access: "none", status: 204 },
  fail: { method: "GET", path: "/fail", summary: "Fails", tag: "Test", access: "none", status: 204 },
  health: {
    method: "GET",
    path: "/health",
    summary: "Is asked all the time",
    tag: "Test",
    access: "none",
    status: 204,
  },
});

async function collector() {
  const bodies: string[] = [];
  const paths: string[] = [];
  const server = createHttpServer((request, response) => {
    let text = "";
    request.on("data", (bytes: Buffer) => (text += bytes.toString()));
    request.on("end", () => {
      paths.push(request.url ?? "");
      bodies.push(text);
      response.setHeader("content-type", "application/json");
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const spans = () =>
    bodies
      .flatMap((body) => (JSON.parse(body) as Export).resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, paths, spans };
}

/** A program with the routes, whose spans go to `endpoint` until it is stopped. It calls itself: a trace of two hops. */
async function program(endpoint: string | undefined) {
  const lines: { msg: string; reason?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as { msg: string }) };
  const log = createLog({ component: "test", level: "warn", destination });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const running = await withSpans(endpoint, { component: "test", log }, async () => {
    const server = createServer(log, { beginsTraces: true });
    const next = connect(routes, { url, name: "the next program" });
    const timed = createTimed(false, () => undefined);
    serve(
      server,
      routes,
      {
        async pause(_input, context) {
          await timed("create", context, (timing) => timing.measure("node", () => next.call.start({})));
        },
        start: () => Promise.resolve(),
        fail: () => Promise.reject(new AppError("internal", SECRET)),
        health: () => Promise.resolve(),
      },
      () => undefined,
    );
    await server.listen({ host: "127.0.0.1", port });
    return {
      async stop() {
        await next.close();
        await server.close();
      },
    };
  });
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= running.stop());
  onTestFinished(stop);
  return { url, lines, stop };
}

const pause = (url: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/sandboxes/sbx1/pause?key=${SECRET}`, { method: "POST", headers: { "x-api-key": SECRET, ...headers } });

test("a request, the part of its work and the call that this makes are three spans of one trace, with no secret in them", async () => {
  const taken = await collector();
  const { url, stop } = await program(`${taken.url}/`);
  expect((await pause(url)).status).toBe(204);
  expect((await fetch(`${url}/fail`)).status).toBe(500);
  expect((await fetch(`${url}/health`)).status).toBe(204);
  await stop();
  expect(new Set(taken.paths)).toEqual(new Set(["/v1/traces"]));
  const spans = taken.spans();
  expect(spans.map(({ name }) => name).toSorted()).toEqual([
    "GET /fail",
    "GET /start",
    "POST /sandboxes/:sandboxID/pause",
    "node",
  ]);
  const of = (name: string) => spans.find((span) => span.name === name);
  const [whole, part, call] = [of("POST /sandboxes/:sandboxID/pause"), of("node"), of("GET /start")];
  expect(whole?.parentSpanId ?? "").toBe("");
  expect(part).toMatchObject({ traceId: whole?.traceId, parentSpanId: whole?.spanId, kind: 1 });
  expect(call).toMatchObject({ traceId: whole?.traceId, parentSpanId: whole?.spanId, kind: 2 });
  expect(whole?.attributes).toContainEqual({ key: "svc.sandbox.id", value: { stringValue: "sbx1" } });
  expect(of("GET /fail")?.status.code).toBe(2);
  expect(taken.bodies.join()).toContain("svc-test");
  expect(taken.bodies.join()).not.toContain(SECRET);
});

test("of a caller's trace the caller decides whether it is recorded", async () => {
  const taken = await collector();
  const { url, stop } = await program(taken.url);
  await pause(url, { traceparent: `00-${TRACE}-${PARENT}-00` });
  await pause(url, { traceparent: `00-${TRACE}-${PARENT}-01` });
  await stop();
  expect(taken.spans()).toHaveLength(3);
  expect(taken.spans().find(({ kind, name }) => kind === 2 && name.startsWith("POST"))).toMatchObject({
    traceId: TRACE,
    parentSpanId: PARENT,
  });
});

test("a collector that is away delays no request and no end, and the log says once that spans are dropped", async () => {
  const { url, lines, stop } = await program(`http://127.0.0.1:${await freePort()}`);
  for (let count = 0; count < 20; count++) expect((await pause(url)).status).toBe(204);
  await expect.poll(() => lines.length).toBeGreaterThan(0);
  await pause(url);
  await stop();
  expect(lines.map(({ msg }) => msg)).toEqual(["the collector does not take spans; they are dropped"]);
});

test.each([undefined, ""])("without a collector (%j) nothing is kept", async (endpoint) => {
  const { url } = await program(endpoint);
  expect(areSpansKept()).toBe(false);
  expect((await pause(url)).status).toBe(204);
});
