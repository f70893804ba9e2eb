/** Requests of a sandbox with a rule that has placeholders, whose values a node's orchestrator has. */

import { request as httpsRequest } from "node:https";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { createOrchestrators } from "../../../../agent/joining/orchestrators.ts";
import { peeringByTokens } from "../../../../agent/joining/peering.ts";
import { startValues } from "../../../../agent/placeholders/start-values.ts";
import { valueApi } from "../../../../shared/agent-api/value-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { serve } from "../../../../shared/http/serve.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import {
  dial,
  exchangeRaw,
  leafOf,
  listenTransformed,
  nodeAuthority,
  startOrigin,
} from "../../../support/peers/transformed.ts";

const log = createLog({ component: "test", level: "silent" });
const HOST = "api.example.test";
const RUN = "11111111-1111-4111-8111-111111111111";
const VALUE = "v4lue-of-the-secret";
const HEADERS = { Authorization: "Bearer ${svc.secrets.KEY}", "X-Who": "${e2b.identity.tokens.me}" };
const TOKEN = "node-1:proof-of-the-node";
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: mine\r\nConnection: close\r\n\r\n`;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** An orchestrator that knows these values, and the values of a node that asks it. */
async function setup(values: Record<string, string>) {
  const clock = { now: Date.now() };
  const reports: { asks: string; host: string; count: number }[] = [];
  const server = createServer(log);
  serve(
    server,
    valueApi,
    {
      resolveValue({ body: { executionId, asks } }) {
        if (executionId !== RUN) throw new AppError("forbidden", "the execution does not run on this node");
        const value = values[asks];
        if (value === undefined) throw new AppError("not_found", `there is no ${asks}`);
        return { value, usableUntil: clock.now + 300_000 };
      },
      reportUses({ body }) {
        reports.push(...body.uses.map(({ asks, host, count }) => ({ asks, host, count })));
      },
    },
    (_, { headers }) => {
      if (headers.authorization !== `Bearer ${TOKEN}`) throw new AppError("unauthorized", "not a node");
    },
  );
  const orchestrators = createOrchestrators(await server.listen({ host: "127.0.0.1", port: 0 }), log);
  undo.push(() => server.close());
  const teardown = new Teardown(log);
  const peering = peeringByTokens({ nodeToken: TOKEN, orchestratorToken: TOKEN }, []);
  const node = startValues({ orchestrators, peering, now: () => clock.now, log }, teardown);
  undo.push(() => teardown.run());
  const begin = (executionId = RUN) => node.begin(executionId, { ...OPEN, rules: [{ host: HOST, headers: HEADERS }] });
  begin();
  return { clock, reports, node, begin, stop: () => teardown.run(), away: () => server.close() };
}

type World = Awaited<ReturnType<typeof setup>>;

async function origin(tls: boolean) {
  const seen: (string | undefined)[][] = [];
  const { port } = await startOrigin(
    tls ? HOST : undefined,
    ({ headers }, response) => {
      seen.push([headers.authorization, String(headers["x-who"])]);
      response.end("fine");
    },
    tls ? await leafOf(HOST) : undefined,
  );
  return { port, seen };
}

async function behind({ node }: World, { tls = true, allowPlainHttp = false, executionId = RUN } = {}) {
  const { port: to, seen } = await origin(tls);
  const listening = await listenTransformed({
    hostname: HOST,
    tls,
    to,
    port: tls ? 443 : 80,
    headers: HEADERS,
    allowPlainHttp,
    resolve: async (placeholder) => (await node.resolve({ executionId, placeholder, host: HOST })).answer,
  });
  return { ...listening, seen, get: () => exchangeRaw(listening.port, tls ? HOST : undefined, GET) };
}

const BOTH = { "e2b.secrets.KEY": VALUE, "e2b.identity.tokens.me": "token" };

test("the values are in the request to the destination, in place of the program's own header", async () => {
  const world = await setup({ ...BOTH });
  const { get, seen } = await behind(world);
  expect(await get()).toMatch(/^HTTP\/1.1 200 /);
  expect(seen).toEqual([[`Bearer ${VALUE}`, "token"]]);
});

test("a new version is used, and a deleted secret is not, once a second has passed", async () => {
  const values: Record<string, string> = { ...BOTH };
  const world = await setup(values);
  const { get, seen, ended } = await behind(world);
  await get();
  values["e2b.secrets.KEY"] = "second";
  world.clock.now += 1_000;
  await get();
  expect(seen.map(([authorization]) => authorization)).toEqual([`Bearer ${VALUE}`, "Bearer second"]);
  delete values["e2b.secrets.KEY"];
  world.clock.now += 1_000;
  const answer = await get();
  expect(answer).toMatch(/^HTTP\/1.1 502 /);
  expect(answer).toContain("svc: the placeholder ${e2b.secrets.KEY} cannot be resolved: there is no e2b.secrets.KEY\n");
  expect(seen).toHaveLength(2);
  await expect.poll(() => ended.at(-1)?.failed).toMatch(/cannot be resolved/);
});

test("an execution that has ended, and one of another node, get nothing", async () => {
  const world = await setup({ ...BOTH });
  const other = "22222222-2222-4222-8222-222222222222";
  world.begin(other);
  const foreign = await behind(world, { executionId: other });
  expect(await foreign.get()).toContain("the execution does not run on this node");
  const own = await behind(world);
  await own.get();
  world.node.end(RUN);
  expect(await own.get()).toMatch(/^HTTP\/1.1 502 [^]*no rule of the sandbox has it/);
  expect([foreign.seen, own.seen.length]).toEqual([[], 1]);
});

test("without the orchestrator a request fails, and the answer says so", async () => {
  const world = await setup({ ...BOTH });
  const { get, seen } = await behind(world);
  await world.away();
  expect(await get()).toMatch(/^HTTP\/1.1 502 [^]*cannot be resolved: the orchestrator does not answer\n$/);
  expect(seen).toEqual([]);
});

test("uses are reported by name and host, at the latest when the agent stops", async () => {
  const world = await setup({ ...BOTH });
  const { get } = await behind(world);
  await get();
  await get();
  await world.stop();
  const total = (asks: string) =>
    world.reports.filter((use) => use.asks === asks && use.host === HOST).reduce((sum, { count }) => sum + count, 0);
  expect([total("e2b.secrets.KEY"), total("e2b.identity.tokens.me")]).toEqual([2, 2]);
  expect(JSON.stringify(world.reports)).not.toContain(VALUE);
});

test("a value with a line break is refused, and the answer names the placeholder only", async () => {
  const world = await setup({ ...BOTH, "e2b.secrets.KEY": `${VALUE}\r\nX-Injected: yes` });
  const { get, seen } = await behind(world);
  const answer = await get();
  expect(answer).toContain(
    "svc: the value of the placeholder ${e2b.secrets.KEY} has characters that no header can have",
  );
  expect([seen, answer.includes(VALUE)]).toEqual([[], false]);
});

describe("without TLS", () => {
  test("a request that needs a value is refused before any value is asked for, and the connection ends", async () => {
    const world = await setup({ ...BOTH });
    const { get, seen, asked } = await behind(world, { tls: false });
    const answer = await get();
    expect(answer).toMatch(/^HTTP\/1.1 403 [^]*whose values are sent over TLS only: use https\n$/);
    expect([seen, asked]).toEqual([[], []]);
  });

  test("it is sent where the rule allows plain HTTP", async () => {
    const world = await setup({ ...BOTH });
    const { get, seen } = await behind(world, { tls: false, allowPlainHttp: true });
    expect(await get()).toMatch(/^HTTP\/1.1 200 /);
    expect(seen).toEqual([[`Bearer ${VALUE}`, "token"]]);
  });

  test("a rule without placeholders is applied as over TLS", async () => {
    const { port, seen } = await origin(false);
    const headers = { "x-who": "plain" };
    const { port: listens } = await listenTransformed({ hostname: HOST, tls: false, to: port, port: 80, headers });
    expect(await exchangeRaw(listens, undefined, GET)).toMatch(/^HTTP\/1.1 200 /);
    expect(seen).toEqual([["mine", "plain"]]);
  });
});

describe("the value goes to its host only", () => {
  /** The attack's bytes, over a verified connection to the host of the rule. */
  const attack = async (bytes: string) => {
    const world = await setup({ ...BOTH });
    const { port, seen } = await behind(world);
    return { answer: await exchangeRaw(port, HOST, bytes), seen };
  };

  test.each([
    ["a second Host", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: evil.test\r\n\r\n`, 400],
    ["another Host than the SNI", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421],
    ["a whole address of another host", `GET https://evil.test/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 421],
    ["CONNECT inside the connection", `CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n`, 400],
    ["TRACE, which repeats the request", `TRACE / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
    [
      "two lengths",
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ])("%s is refused, and nothing is sent", async (_, bytes, status) => {
    const { answer, seen } = await attack(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect([seen, answer.includes(VALUE)]).toEqual([[], false]);
  });

  test("another SNI than the name of the connection gets no certificate, and nothing is sent", async () => {
    const world = await setup({ ...BOTH });
    const { port, seen, asked } = await behind(world);
    const socket = await dial(port);
    onTestFinished(() => void socket.destroy());
    const options = { createConnection: undefined, socket, servername: "evil.test", ca: nodeAuthority.certificate };
    const outcome = await new Promise((resolve) => {
      httpsRequest({ ...options, agent: false }, resolve)
        .once("error", resolve)
        .end();
    });
    expect([outcome instanceof Error, seen, asked]).toEqual([true, [], []]);
  });

  test("a destination whose certificate does not hold gets nothing", async () => {
    const world = await setup({ ...BOTH });
    const seen: unknown[] = [];
    const { port: to } = await startOrigin(
      HOST,
      ({ headers }, response) => {
        seen.push(headers);
        response.end();
      },
      await leafOf("other.test"),
    );
    const resolve = async (placeholder: string) =>
      (await world.node.resolve({ executionId: RUN, placeholder, host: HOST })).answer;
    const { port } = await listenTransformed({ hostname: HOST, tls: true, to, port: 443, headers: HEADERS, resolve });
    expect(await exchangeRaw(port, HOST, GET)).toMatch(/^HTTP\/1.1 502 [^]*is for another name/);
    expect(seen).toEqual([]);
  });
});
