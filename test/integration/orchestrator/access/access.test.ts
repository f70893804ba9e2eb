/** Callers' rights on each route, and how often they may call: keys, operators, bodies without permission, rate limits. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeApi } from "../../../../shared/agent-api/routes.ts";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { ADMIN_TOKEN, type Ask, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { good, pathOf } from "../../../support/samples.ts";

const METRICS_TOKEN = "test-metrics-token-1";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { rateLimitFailedAuthPerMinute: 100_000, metricsToken: METRICS_TOKEN } });
});
afterAll(() => cluster.stop());

const routes: [string, Route][] = Object.entries(publicApi);
const guarded = routes.filter(([, { access }]) => access !== "none");
const admin = { "x-admin-token": ADMIN_TOKEN };

async function call(route: Route, ask: Ask) {
  const body = route.body === undefined ? {} : { body: good(route.body) };
  const query = new URLSearchParams(good(route.query ?? { type: "object" }) as Record<string, string>);
  // A project may ask about itself only.
  const own = route.access === "project" ? { teamID: cluster.teamId, projectID: cluster.projectId } : {};
  return cluster.ask(route.method, `${pathOf(route, own)}?${query.toString()}`, { ...ask, ...body });
}

describe("every guarded route", () => {
  test.each(guarded)(
    "%s refuses a caller without or with wrong credentials, each in its own words",
    async (_name, route) => {
      const none = await call(route, { key: null });
      const unknown = await call(route, { key: `svc_${"0".repeat(40)}` });
      const malformed = await call(route, { key: "e2b_nothex" });
      const bearer = await call(route, { key: null, headers: { authorization: "Bearer sk_e2b_old" } });
      const wrongAdmin = await call(route, {
        key: null,
        headers: { "x-admin-token": "wrong", "x-team-id": cluster.teamId },
      });
      for (const answer of [none, unknown, malformed, bearer, wrongAdmin]) {
        expect(answer.status, answer.text).toBe(401);
        expect(answer.body).toMatchObject({ code: 401, error_code: "unauthorized" });
      }
      const said = [none, unknown, malformed, bearer].map(({ body }) => (body as { message: string }).message);
      if (route.access === "project") expect(new Set(said).size).toBe(4);
      if (route.access !== "admin") expect(said[3]).toContain("discontinued");
    },
  );
});

test.each(guarded.filter(([, { access }]) => access === "project"))(
  "%s accepts a key of either prefix, and an operator who names the project",
  async (_name, route) => {
    const asKey = await call(route, {});
    const asOld = await call(route, { key: cluster.key.replace("svc_", "e2b_") });
    const asAdmin = await call(route, { key: null, headers: { ...admin, "x-team-id": cluster.projectId } });
    const asBearer = await call(route, {
      key: null,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "x-team-id": cluster.teamId },
    });
    for (const answer of [asKey, asOld, asAdmin, asBearer]) expect([401, 403]).not.toContain(answer.status);
    expect((await call(route, { key: null, headers: admin })).status).toBe(400);
    expect((await call(route, { headers: { "x-team-id": "prj_other" } })).status).toBe(403);
    expect((await call(route, { headers: { "x-team-id": cluster.projectId } })).status).not.toBe(403);
  },
);

test.each(["teamId", "projectId"] as const)("the %s of X-Team-ID and of paths is read in any case", async (kind) => {
  for (const id of [
    cluster[kind].toUpperCase(),
    `${cluster[kind].slice(0, 2).toUpperCase()}${cluster[kind].slice(2)}`,
  ]) {
    const list = (ask: Ask) => cluster.ask("GET", "/v2/sandboxes", ask);
    expect((await list({ headers: { "x-team-id": id } })).status, id).toBe(200);
    expect((await list({ key: null, headers: { ...admin, "x-team-id": id } })).status, id).toBe(200);
    const bearer = { authorization: `Bearer ${ADMIN_TOKEN}`, "x-team-id": id };
    expect((await cluster.ask("GET", "/api-keys", { key: null, headers: bearer })).status, id).toBe(200);
    const kill = `/admin/teams/${id}/sandboxes/kill`;
    expect((await cluster.ask("POST", kill, { key: null, headers: admin })).status, id).toBe(200);
  }
  const { [kind]: stranger } = await cluster.addProject(`Stranger ${kind}`);
  const refused = await cluster.ask("GET", "/v2/sandboxes", { headers: { "x-team-id": stranger.toUpperCase() } });
  expect(refused.status).toBe(403);
});

test.each(guarded.filter(([, { access }]) => access !== "project"))(
  "%s does not take an API key",
  async (_name, route) => {
    expect((await call(route, {})).status).toBe(401);
  },
);

test("no route of the contract is missing, and none answers that it is not implemented", async () => {
  for (const [name, route] of routes) {
    const headers = { ...admin, "x-team-id": cluster.teamId };
    const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const answer = await call(route, { key: null, headers: route.access === "bearer" ? bearer : headers });
    expect(answer.text, name).not.toContain("no route");
    expect(answer.status, name).not.toBe(501);
    if (answer.status >= 400) expect(answer.body, name).toMatchObject({ code: answer.status });
  }
});

describe("keys", () => {
  const member = () => ({
    key: null,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "x-team-id": cluster.teamId },
  });

  test("are shown once, listed masked, can be renamed, and are refused from the moment of their deletion", async () => {
    const created = await cluster.ask("POST", "/api-keys", { ...member(), body: { name: "ci" } });
    expect(created.status).toBe(201);
    const { key, id, mask } = created.body as { key: string; id: string; mask: object };
    expect(key).toMatch(/^svc_[0-9a-f]{40}$/);
    expect(mask).toEqual({
      prefix: "svc_",
      valueLength: 40,
      maskedValuePrefix: key.slice(4, 6),
      maskedValueSuffix: key.slice(-4),
    });
    expect((await cluster.ask("GET", "/v2/sandboxes", { key })).status).toBe(200);
    for (const name of [" ", "\t", "a\u0000b"]) {
      const refused = await cluster.ask("POST", "/api-keys", { ...member(), body: { name } });
      expect(refused.status, JSON.stringify(name)).toBe(400);
    }
    const renamed = await cluster.ask("PATCH", `/api-keys/${id}`, { ...member(), body: { name: "cd" } });
    expect([renamed.status, renamed.text, renamed.headers.get("content-length")]).toEqual([200, "", "0"]);
    const list = await cluster.ask("GET", "/api-keys", member());
    expect(list.body).toContainEqual(expect.objectContaining({ id, name: "cd" }));
    expect(list.text).not.toContain(key.slice(6, -4));
    await expect
      .poll(
        async () =>
          ((await cluster.ask("GET", "/api-keys", member())).body as { id: string; lastUsed: string | null }[]).find(
            (each) => each.id === id,
          )?.lastUsed,
      )
      .not.toBeNull();
    expect((await cluster.ask("DELETE", `/api-keys/${id}`, member())).status).toBe(204);
    expect((await cluster.ask("GET", "/v2/sandboxes", { key })).status).toBe(401);
    expect((await cluster.ask("DELETE", `/api-keys/${id}`, member())).status).toBe(404);
  });

  test("a key in use in a hundred calls at once is refused by every call made after its deletion", async () => {
    const { key } = await cluster.addProject("busy");
    const keys = (await cluster.ask("GET", "/admin/projects", { key: null, headers: admin })).body as {
      teamID: string;
      name: string;
    }[];
    const team = keys.find(({ name }) => name === "busy")?.teamID ?? "";
    const [row] = (await cluster.ask("GET", "/api-keys", { key: null, headers: { ...admin, "x-team-id": team } }))
      .body as { id: string }[];
    const during = Array.from({ length: 100 }, () => cluster.ask("GET", "/v2/sandboxes", { key }));
    await cluster.ask("DELETE", `/admin/teams/${team}/api-keys/${row?.id ?? ""}`, { key: null, headers: admin });
    const after = await Promise.all(Array.from({ length: 20 }, () => cluster.ask("GET", "/v2/sandboxes", { key })));
    await Promise.all(during);
    expect(after.map(({ status }) => status)).toEqual(Array(20).fill(401));
  });
});

describe("operators", () => {
  test("see projects, counts and nodes", async () => {
    const ask = (path: string) => cluster.ask("GET", path, { key: null, headers: admin });
    expect((await ask("/admin/projects")).body).toContainEqual(
      expect.objectContaining({ teamID: cluster.teamId, projectID: cluster.projectId, slug: "test-project" }),
    );
    const before = ((await ask("/admin/sandboxes/running-counts")).body as Record<string, number>)[cluster.teamId] ?? 0;
    await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect((await ask("/admin/sandboxes/running-counts")).body).toMatchObject({ [cluster.teamId]: before + 1 });
    expect((await ask("/nodes")).body).toMatchObject([
      {
        id: "n1",
        status: "ready",
        sandboxStartingCount: 0,
        metrics: {
          cpuCount: 64,
          snapshotStoredBytes: 4_000,
          snapshotQuotaBytes: 9_000,
          diskUsedBytes: 0,
          diskFreeBytes: 2 ** 50,
          diskReserveBytes: 2 ** 40,
        },
      },
    ]);
    expect((await ask("/nodes/none")).status).toBe(404);
    expect((await ask("/nodes?clusterID=11111111-1111-4111-8111-111111111111")).body).toEqual([]);
  });

  test("ask where a sandbox of a template would be placed, and why not elsewhere", async () => {
    const ask = (path: string) => cluster.ask("GET", path, { key: null, headers: admin });
    const { templateID } = (await cluster.ask("GET", "/templates/aliases/base")).body as { templateID: string };
    expect((await ask(`/nodes?explain=${templateID}`)).body).toMatchObject([
      { id: "n1", placement: { fits: true, score: expect.any(Number) as number } },
    ]);
    await cluster.ask("POST", "/nodes/n1", { key: null, headers: admin, body: { status: "standby" } });
    const [standing] = (await ask(`/nodes?explain=${templateID}`)).body as { placement: object }[];
    await cluster.ask("POST", "/nodes/n1", { key: null, headers: admin, body: { status: "ready" } });
    expect(standing?.placement).toEqual({ fits: false, reason: "is standby" });
    expect((await ask("/nodes?explain=none")).status).toBe(404);
  });

  test("two projects of one name have two slugs", async () => {
    const [one, two] = [await cluster.addProject("Ünïque Näme!"), await cluster.addProject("Ünïque Näme!")];
    expect(one.slug).toMatch(/^[a-z0-9-]+$/);
    expect(two.slug).toBe(`${one.slug}-2`);
  });

  test("unknown and malformed teams have different answers", async () => {
    const kill = (team: string) =>
      cluster.ask("POST", `/admin/teams/${team}/sandboxes/kill`, { key: null, headers: admin });
    expect((await kill("nonsense")).status).toBe(400);
    expect((await kill("prj_unknown")).status).toBe(404);
    expect((await kill("00000000-0000-4000-8000-000000000000")).status).toBe(404);
  });
});

describe("a body without permission", () => {
  const withBody = guarded.filter(([, { method }]) => method !== "GET");
  const requests: [string, string][] = [
    ...withBody.map(([name, route]): [string, string] => [name, `${route.method} ${pathOf(route)}`]),
    ["a node's report", `${nodeApi.heartbeat.method} ${pathOf(nodeApi.heartbeat)}`],
    ["no route", "POST /nowhere"],
    ["an upload that is not signed", `PUT /uploads/base/${"0".repeat(64)}`],
  ];

  test.each(requests)("%s is refused before it comes, and the connection is closed", async (_name, line) => {
    const client = await RawClient.open(Number(new URL(cluster.url).port));
    client.send(
      `${line} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{"a":"`,
    );
    const refused = /^HTTP\/1.1 40[134] .*\r\nconnection: close\r\n/is;
    await expect.poll(() => client.received).toMatch(refused);
    await expect.poll(() => client.closed).toBe(true);
  });
});

describe("limits", () => {
  test("too many calls of one kind get 429 with whole seconds, and calls of other kinds succeed", async () => {
    const tight = await startCluster({ config: { rateLimitCreatePerSecond: 1, rateLimitFailedAuthPerMinute: 5 } });
    try {
      const create = () => tight.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
      // At once, and more than a slow machine has room for meanwhile.
      const answers = await Promise.all(Array.from({ length: 12 }, create));
      const limited = answers.find(({ status }) => status === 429);
      expect(limited?.body).toEqual({ code: 429, message: "Rate limit exceeded", error_code: "rate_limited" });
      expect(limited?.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      expect(limited?.headers.get("ratelimit-remaining")).toBe("0");
      const read = await tight.ask("GET", "/v2/sandboxes");
      expect(read.status).toBe(200);
      expect(read.headers.get("ratelimit-limit")).toBe("2000");
      const { key } = await tight.addProject("other");
      expect((await tight.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } })).status).toBe(201);
      const guesses = await Promise.all(
        Array.from({ length: 10 }, () => tight.ask("GET", "/v2/sandboxes", { key: "svc_x" })),
      );
      expect(guesses.filter(({ status }) => status === 401)).toHaveLength(5);
      expect(guesses.filter(({ status }) => status === 429)).toHaveLength(5);
      expect((await tight.ask("GET", "/v2/sandboxes")).status).toBe(200);
    } finally {
      await tight.stop();
    }
  });

  test("of clients behind one address, the one that repeats a wrong key uses up only its own attempts", async () => {
    const tight = await startCluster({ config: { rateLimitFailedAuthPerMinute: 3 } });
    try {
      const ask = async (key: string) => (await tight.ask("GET", "/v2/sandboxes", { key })).status;
      const wrong = (number: number) => `svc_${String(number).padStart(40, "0")}`;
      const repeated = [];
      for (let round = 0; round < 10; round++) repeated.push(await ask(wrong(0)));
      expect(repeated.slice(0, 3)).toEqual([401, 401, 401]);
      expect(repeated).toContain(429);
      expect(await ask(wrong(1))).toBe(401);
      // The limit of all wrong keys together is ten times as high, so that guessing ends too.
      const guessed = await Promise.all(Array.from({ length: 100 }, (_, index) => ask(wrong(2 + index))));
      expect(guessed.filter((status) => status === 429).length).toBeGreaterThan(30);
      expect(await ask(tight.key)).toBe(200);
    } finally {
      await tight.stop();
    }
  });

  test("headers that are too long are refused with the one error body", async () => {
    const port = Number(new URL(cluster.url).port);
    const answer = await ask(port, `GET / HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(40_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
    expect(answer).toContain('"code":431');
  });
});

test("metrics are for operators and for the bearer of the metrics token, on loopback as anywhere", async () => {
  const read = (headers: Record<string, string>, ask: Ask = { key: null }) =>
    cluster.ask("GET", "/metrics", { ...ask, headers });
  for (const refused of [
    await read({}),
    await read({}, {}),
    await read({ authorization: "Bearer test-node-token-0001" }),
    await read({ "x-admin-token": `${METRICS_TOKEN}x` }),
  ]) {
    expect(refused.status).toBe(401);
    expect(refused.text).not.toContain("svc_sandboxes");
  }
  for (const { status, text } of [
    await read({ authorization: `Bearer ${METRICS_TOKEN}` }),
    await read({ authorization: `Bearer ${ADMIN_TOKEN}` }),
    await read(admin),
  ]) {
    expect(status).toBe(200);
    for (const name of ["svc_build_info", "svc_sandboxes", "svc_node_up", "svc_http_request_duration_seconds"]) {
      expect(text).toContain(name);
    }
  }
});
