/**
 * An object of another project gets the same answers as one that does not exist, so a caller cannot probe ids. The table
 * takes its routes from the API's contract: a new route is in it without being named here.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { buildingOn } from "../../../support/cluster/building.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { until } from "../../../support/runner/until.ts";
import { good } from "../../../support/samples.ts";

type Names = Readonly<Record<string, string>>;

let cluster: Cluster;
let stranger: string;
/** The value for each field of a path, a query or a body. */
let foreign: Names;
let unknown: Names;
let alias: { readonly foreign: string; readonly unknown: string };

const { request, start, status } = buildingOn(() => cluster);

beforeAll(async () => {
  cluster = await startCluster({ config: { buildPollMs: 20 } });
  const other = await cluster.addProject("Other");
  stranger = other.key;
  const app = await request({ name: "app" });
  await start(app);
  const ready = async () => (await status(app)).status === "ready";
  await until(ready, { what: "the build", timeoutMs: 20_000 });
  const sandbox = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 600 } });
  const { sandboxID } = sandbox.body as { sandboxID: string };
  const taken = await cluster.ask("POST", `/sandboxes/${sandboxID}/snapshots`, { body: { name: "snap" } });
  expect(taken.status, taken.text).toBe(201);
  foreign = { sandboxID, templateID: app.templateID, buildID: app.buildID };
  unknown = {
    sandboxID: unlike(sandboxID),
    templateID: unlike(app.templateID),
    buildID: "00000000-0000-4000-8000-0000000000ff",
  };
  alias = { foreign: "test-project/app", unknown: "test-project/nix" };
}, 60_000);
afterAll(() => cluster.stop());

/** Returns an unused id of the same length. */
function unlike(id: string): string {
  return `${id.slice(0, 1)}${"0".repeat(id.length - 1)}`;
}

const routes = (Object.entries(publicApi) as [string, Route][]).filter(
  ([, route]) => route.access === "project" && /sandboxID|templateID|buildID/.test(route.path),
);

async function ask(route: Route, names: Names): Promise<Answer> {
  const params = (route.params === undefined ? {} : good(route.params)) as Names;
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? params[name] ?? "x");
  const query = new URLSearchParams(good(route.query ?? { type: "object" }) as Record<string, string>);
  const body = route.body === undefined ? {} : { body: good(route.body) };
  return cluster.ask(route.method, `${path}?${query.toString()}`, { key: stranger, ...body });
}

/**
 * Everything that a caller learns from an answer, without headers that always change; one word stands for all names in the
 * request.
 */
function learned({ status, text, headers }: Answer, names: Names) {
  const words = Object.values(names).reduce((said, name) => said.replaceAll(name, "NAME"), text);
  const changing = /^(date|ratelimit-.*|x-request-id|content-length)$/;
  return { status, words, headers: [...headers.keys()].filter((name) => !changing.test(name)) };
}

test("the table covers the routes about sandboxes, templates and builds", () => {
  expect(routes.map(([name]) => name)).toEqual(
    expect.arrayContaining(["get", "kill", "logs", "metrics", "fork", "listTags", "updateTemplate", "buildLogs"]),
  );
});

test.each(routes)("%s answers the same for another project's id and for an unknown id", async (_name, route) => {
  const ofForeign = await ask(route, foreign);
  expect(learned(ofForeign, foreign)).toEqual(learned(await ask(route, unknown), unknown));
  expect(ofForeign.text).not.toContain("forbidden");
});

test("routes with a template name, or an id outside the path, answer the same for another project's and for an unknown one", async () => {
  const same = async (method: string, path: (name: string) => string, body: (name: string) => object | undefined) => {
    const answers = await Promise.all(
      [alias.foreign, alias.unknown].map(async (name) => {
        const sent = body(name);
        const as = { key: stranger, ...(sent === undefined ? {} : { body: sent }) };
        const { status, text } = await cluster.ask(method, path(encodeURIComponent(name)), as);
        return { status, words: text.replaceAll(/(test-project\/)?\b(app|nix)\b/g, "NAME") };
      }),
    );
    expect(answers[0], `${method} ${path("NAME")}`).toEqual(answers[1]);
  };
  const none = () => undefined;
  await same("GET", (name) => `/templates/${name}`, none);
  await same("GET", (name) => `/templates/${name}/tags`, none);
  await same("DELETE", (name) => `/templates/${name}`, none);
  await same(
    "PATCH",
    (name) => `/v2/templates/${name}`,
    () => ({ public: true }),
  );
  await same(
    "POST",
    () => "/v2/sandboxes",
    (name) => ({ templateID: name }),
  );
  await same(
    "POST",
    () => "/templates/tags",
    (name) => ({ target: name, tags: ["a"] }),
  );
  await same(
    "DELETE",
    () => "/templates/tags",
    (name) => ({ name, tags: ["a"] }),
  );
  await same(
    "POST",
    () => "/v3/templates",
    (name) => ({ name }),
  );
  await same("GET", (name) => `/snapshots?name=${name}`, none);
  await same("GET", (name) => `/v2/sandboxes?template=${name}`, none);

  for (const field of ["sandboxID", "templateID"]) {
    const paths: Record<string, (id: string) => string> = {
      sandboxID: (id) => `/sandboxes/metrics?sandbox_ids=${id}`,
      templateID: (id) => `/v2/sandboxes?template=${id}`,
    };
    const [mine, none] = await Promise.all(
      [foreign, unknown].map((names) =>
        cluster.ask("GET", paths[field]?.(names[field] ?? "") ?? "", { key: stranger }),
      ),
    );
    expect([mine?.status, mine?.text]).toEqual([none?.status, none?.text]);
  }
});

test("only a full name reveals that it is taken; the id of a private template is answered like an unknown one", async () => {
  const exists = async (text: string) =>
    (await cluster.ask("GET", `/templates/aliases/${encodeURIComponent(text)}`, { key: stranger })).status;
  expect(await exists(alias.foreign)).toBe(403);
  expect(await exists(alias.unknown)).toBe(404);
  expect(await exists(foreign.templateID ?? "")).toBe(404);
  expect(await exists(unknown.templateID ?? "")).toBe(404);
});
