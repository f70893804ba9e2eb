/**
 * The API as browsers see it, and its own documents: CORS, health and version, the reference, routes that are only
 * announced.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { VERSION } from "../../../../shared/version.ts";
import { ADMIN_TOKEN, type Ask, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { bad, good, pathOf, type Schema, withField } from "../../../support/samples.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const routes: [string, Route][] = Object.entries(publicApi);

describe("browsers", () => {
  test.each(["/v2/sandboxes", "/no/such/route", "/sandboxes/x/timeout"])(
    "preflight of %s needs no key",
    async (path) => {
      const answer = await cluster.ask("OPTIONS", path, {
        key: null,
        headers: {
          origin: "https://a.test",
          "access-control-request-method": "POST",
          "access-control-request-headers": "x-api-key",
        },
      });
      expect([answer.status, answer.text]).toEqual([204, ""]);
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH");
      expect(answer.headers.get("access-control-allow-headers")).toContain("X-API-Key");
    },
  );

  test("preflights admit what tracing, streams of events and caches add to a page's requests, and no operator's token", async () => {
    const { headers } = await cluster.ask("OPTIONS", "/events", {
      key: null,
      headers: { origin: "https://a.test", "access-control-request-method": "GET" },
    });
    const allowed = headers.get("access-control-allow-headers")?.toLowerCase().split(/, */) ?? [];
    for (const name of ["traceparent", "tracestate", "baggage", "sentry-trace", "last-event-id", "cache-control"]) {
      expect(allowed).toContain(name);
    }
    expect(allowed).not.toContain("x-admin-token");
  });

  test.each([
    ["GET", "/v2/sandboxes", cluster_key],
    ["GET", "/v2/sandboxes", () => null],
    ["GET", "/no/such/route", cluster_key],
    ["POST", "/v2/sandboxes", cluster_key],
  ])("%s %s may be read by any page, errors too", async (method, path, key) => {
    const answer = await cluster.ask(method, path, { key: key() });
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    const exposed = answer.headers.get("access-control-expose-headers")?.toLowerCase() ?? "";
    for (const name of ["x-next-token", "x-total-running", "x-total-count", "retry-after", "ratelimit-limit"]) {
      expect(exposed).toContain(name);
    }
  });
});

function cluster_key(): string {
  return cluster.key;
}

test("operations need no key: health, readiness, version, documents", async () => {
  const ask = (path: string) => cluster.ask("GET", path, { key: null });
  expect((await ask("/health")).status).toBe(204);
  expect((await ask("/livez")).status).toBe(204);
  expect((await ask("/readyz?verbose")).body).toMatchObject({ ready: true, checks: { nodes: "ok (1 ready)" } });
  expect((await ask("/version")).body).toMatchObject({ envdVersion: "0.6.13" });
  const { paths } = (await ask("/openapi.json")).body as { paths: object };
  expect(Object.keys(paths)).toEqual(expect.arrayContaining([...new Set(routes.map(([, { path }]) => path))]));
  const docs = await ask("/docs");
  expect(docs.headers.get("content-security-policy")).toContain("default-src 'none'");
  for (const [name, { summary }] of routes) {
    expect(docs.text).toContain(`id="${name}"`);
    expect(docs.text).toContain(summary.split("'", 1)[0] ?? "");
  }
});

test("the bare address says what it is and leads to the reference: a page for browsers, JSON for others", async () => {
  const json = await cluster.ask("GET", "/", { key: null });
  expect([json.status, json.body]).toMatchObject([200, { docs: "/docs", openapi: "/openapi.json" }]);
  const page = await cluster.ask("GET", "/", { key: null, headers: { accept: "text/html,*/*" } });
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(page.text).toMatch(/^<!doctype html>.*href="docs"/s);
  for (const { text } of [json, page]) expect(text).not.toContain(VERSION);
});

test("no route of the description answers 501, and none says so", async () => {
  const { paths } = (await cluster.ask("GET", "/openapi.json")).body as {
    paths: Record<string, Record<string, { responses: object }>>;
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => ({ path, method, responses })),
  );
  expect(operations.length).toBeGreaterThan(100);
  for (const { path, method, responses } of operations) {
    expect(responses, `${method} ${path}`).not.toHaveProperty("501");
    // With the operator's token and without what the route needs: every answer but 501 shows that the route is there.
    const ask = { key: null, headers: { "x-admin-token": ADMIN_TOKEN, "x-team-id": cluster.teamId } };
    const { status } = await cluster.ask(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "x"), ask);
    expect([method, path, status]).not.toEqual([method, path, 501]);
  }
});

describe("the API description", () => {
  type Responses = Readonly<Record<string, unknown>>;
  interface Described {
    readonly responses: Responses;
    readonly requestBody?: { content: { "application/json": { schema: Schema } } };
  }
  const operation = async (route: Route): Promise<Described> => {
    const { paths } = (await cluster.ask("GET", "/openapi.json")).body as {
      paths: Record<string, Record<string, Described>>;
    };
    const found = paths[route.path]?.[route.method.toLowerCase()];
    if (found === undefined) throw new Error(`${route.method} ${route.path} is not described`);
    return found;
  };
  const statuses = ({ responses }: Described) => Object.keys(responses).map(Number);

  test.each(routes)("lists every answer that %s gives to right, wrong and unknown requests", async (_name, route) => {
    const query = new URLSearchParams(good(route.query ?? { type: "object" }) as Record<string, string>);
    const path = `${pathOf(route)}?${query.toString()}`;
    const operator = { "x-admin-token": ADMIN_TOKEN, authorization: `Bearer ${ADMIN_TOKEN}` };
    const right =
      route.access === "project" ? {} : { key: null, headers: { ...operator, "x-team-id": cluster.teamId } };
    const body = route.body === undefined ? {} : { body: good(route.body) };
    const wrong = bad(route.body ?? {}).slice(0, 1);
    const asks: Ask[] = [
      { ...right, ...body },
      ...wrong.map(({ field, value }) => ({ ...right, body: withField(body.body, field, value) })),
      { ...body, key: null },
      { ...body, headers: { "x-team-id": "prj_other" } },
      { ...body, key: null, headers: operator },
      { ...body, key: null, headers: { ...operator, "x-team-id": "prj_other" } },
    ];
    const seen = new Set<number>();
    for (const ask of asks) seen.add((await cluster.ask(route.method, path, ask)).status);
    expect(statuses(await operation(route))).toEqual(expect.arrayContaining([...seen]));
  });

  test.each(routes)("shows no success of %s unless it has one", async (_name, route) => {
    const described = await operation(route);
    const works = statuses(described).some((status) => status < 300);
    expect(works).toBe(route.removed !== true);
    if (!works) expect(statuses(described)).toContain(410);
  });
});
