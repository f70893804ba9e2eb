/** A trace goes from a client through two programs, with real servers and clients between them. */

import type { AddressInfo } from "node:net";
import { Type } from "typebox";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../shared/http/client.ts";
import { contract } from "../../../shared/http/contract.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";
import { currentTrace } from "../../../shared/program/tracing/trace.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const HEADER = `00-${TRACE}-00f067aa0ba902b7-01`;

const hops = contract({
  hop: {
    method: "GET",
    path: "/hop",
    summary: "Says which trace it is in",
    tag: "Test",
    access: "none",
    status: 200,
    reply: Type.Array(Type.String()),
  },
  fail: { method: "GET", path: "/fail", summary: "Fails", tag: "Test", access: "none", status: 204 },
});

/** @param next the program that it calls */
async function program(next?: string) {
  const lines: { traceId?: string; msg: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as { msg: string }) };
  const server = createServer(createLog({ component: "test", level: "debug", destination }));
  const own = next === undefined ? undefined : connect(hops, { url: next, name: "the next program" });
  serve(
    server,
    hops,
    {
      async hop() {
        const { traceId = "", spanId = "" } = currentTrace() ?? {};
        return [`${traceId} ${spanId}`, ...((await own?.call.hop({})) ?? [])];
      },
      async fail() {
        await new Promise(setImmediate);
        throw new AppError("internal", "out of order");
      },
    },
    () => undefined,
  );
  await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await own?.close();
    await server.close();
  });
  return { url: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`, lines };
}

const ask = async (url: string, headers: Record<string, string> = {}) => fetch(url, { headers });

test("both programs are in the client's trace, each with a span of its own", async () => {
  const first = await program((await program()).url);
  const spans = (await (await ask(`${first.url}/hop`, { traceparent: HEADER })).json()) as string[];
  expect(spans.map((span) => span.split(" ")[0])).toEqual([TRACE, TRACE]);
  expect(new Set(spans).size).toBe(2);
});

test("a request without a trace gets one, which the next program shares", async () => {
  const first = await program((await program()).url);
  const [one, two] = (await (await ask(`${first.url}/hop`)).json()) as string[];
  expect(one?.split(" ")[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(two?.split(" ")[0]).toBe(one?.split(" ")[0]);
});

test("the log's lines of a failure and of a refusal have the client's trace id", async () => {
  const { url, lines } = await program();
  expect((await ask(`${url}/fail`, { traceparent: HEADER })).status).toBe(500);
  expect((await ask(`${url}/none`, { traceparent: HEADER })).status).toBe(404);
  const ofRequests = lines.filter(({ msg }) => msg.includes("request"));
  expect(ofRequests).toHaveLength(2);
  expect(ofRequests.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE]);
});
