/** What an API key may do: its scopes, its expiry, and the keys that it may make. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

interface Made {
  readonly id: string;
  readonly key: string;
}

async function make(body: object, by: string = cluster.key): Promise<Made> {
  const made = await cluster.ask("POST", "/api-keys", { key: by, body: { name: "made", ...body } });
  expect(made.status, made.text).toBe(201);
  return made.body as Made;
}

const HEADERS = { "X-Key": "hunter2" };
const NETWORK = {
  denyOut: ["0.0.0.0/0"],
  allowOut: ["api.example.com"],
  rules: { "api.example.com": [{ transform: { headers: HEADERS } }] },
};

function create(key: string): Promise<Answer> {
  return cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base", network: NETWORK } });
}

const in1h = () => new Date(Date.now() + 3_600_000).toISOString();

test("a key of one scope gets 403 with the scope it lacks, and a sandbox's life needs `sandboxes` alone", async () => {
  const { key } = await make({ scopes: ["sandboxes"] });
  const created = await create(key);
  expect(created.status, created.text).toBe(201);
  const { sandboxID } = created.body as { sandboxID: string };
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`, { key })).body).toMatchObject({
    envdAccessToken: (created.body as SandboxDetail).envdAccessToken,
  });
  for (const [method, path] of [
    ["POST", `/sandboxes/${sandboxID}/pause`],
    ["POST", `/v2/sandboxes/${sandboxID}/connect`],
    ["GET", "/v2/sandboxes"],
    ["DELETE", `/sandboxes/${sandboxID}`],
  ] as const) {
    const answer = await cluster.ask(method, path, { key });
    expect(answer.status, `${method} ${path} ${answer.text}`).toBeLessThan(300);
  }
  for (const [method, path, lacked] of [
    ["GET", "/templates", "read"],
    ["GET", "/api-keys", "read"],
    ["DELETE", "/templates/base", "templates"],
    ["GET", `/templates/base/files/${"a".repeat(64)}`, "templates"],
    ["POST", "/api-keys", "admin"],
    ["DELETE", "/api-keys/00000000-0000-4000-8000-000000000000", "admin"],
  ] as const) {
    const refused = await cluster.ask(method, path, { key });
    const message = `this API key lacks the scope '${lacked}'`;
    expect([refused.status, refused.body], path).toEqual([403, { code: 403, error_code: "forbidden", message }]);
  }
});

test("a key that may only read gets nothing that opens a sandbox, nor the headers of its rules", async () => {
  const { sandboxID } = (await create(cluster.key)).body as { sandboxID: string };
  const full = await cluster.ask("GET", `/sandboxes/${sandboxID}`);
  expect(full.text).toContain("hunter2");
  const { key } = await make({ scopes: ["read"] });
  const read = await cluster.ask("GET", `/sandboxes/${sandboxID}`, { key });
  expect(read.body).toMatchObject({ sandboxID, network: { allowOut: ["api.example.com"] } });
  expect(read.text).not.toMatch(/hunter2|envdAccessToken/);
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`, { key })).status).toBe(403);
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
});

test("a key makes keys with its own scopes at most, which live no longer than itself, and its mask is their creator", async () => {
  const expiresAt = in1h();
  const admin = await make({ scopes: ["read", "admin"], expiresAt });
  const by = (body: object) => cluster.ask("POST", "/api-keys", { key: admin.key, body: { name: "more", ...body } });
  const wider = await by({ scopes: ["sandboxes"], expiresAt });
  expect([wider.status, wider.text]).toEqual([403, expect.stringContaining("cannot give the scope 'sandboxes'")]);
  for (const longer of [{}, { expiresAt: new Date(Date.parse(expiresAt) + 1).toISOString() }]) {
    expect((await by({ scopes: ["read"], ...longer })).text).toContain(`this API key expires at ${expiresAt}`);
  }
  const made = await make({ scopes: ["admin", "read"], expiresAt }, admin.key);
  const listed = (await cluster.ask("GET", "/api-keys", { key: made.key })).body as { id: string }[];
  const mask = `svc_${admin.key.slice(4, 6)}…${admin.key.slice(-4)}`;
  expect(listed.find(({ id }) => id === made.id)).toMatchObject({
    scopes: ["read", "admin"],
    expiresAt,
    createdBy: { id: mask, email: null },
    lastUsed: expect.any(String) as string,
  });
  expect(listed.find(({ id }) => id === admin.id)).toMatchObject({
    createdBy: { id: expect.stringMatching(/^svc_/) as string },
  });
  const change = (body: object) =>
    cluster.ask("PATCH", `/api-keys/${made.id}`, { key: admin.key, body: { name: "made", ...body } });
  expect((await change({ scopes: ["templates"] })).status).toBe(403);
  // A change is in force at the next call, although the key is cached.
  expect((await change({ scopes: ["admin"] })).status).toBe(200);
  expect((await cluster.ask("GET", "/v2/sandboxes", { key: made.key })).text).toContain("lacks the scope 'read'");
});

test("an expired key gets a 401 of its own, an expiry in the past is refused, and a new expiry is in force at once", async () => {
  const { id, key } = await make({ expiresAt: in1h() });
  await cluster.database.query("update api_keys set expires_at = ? where id = ?", Date.now() - 1, id);
  const list = () => cluster.ask("GET", "/v2/sandboxes", { key });
  expect([(await list()).status, (await list()).text]).toEqual([401, expect.stringContaining("Expired API key")]);
  for (const expiresAt of ["2020-01-01T00:00:00Z", "soon"]) {
    const refused = await cluster.ask("PATCH", `/api-keys/${id}`, { body: { name: "made", expiresAt } });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("expiresAt")]);
  }
  expect((await cluster.ask("PATCH", `/api-keys/${id}`, { body: { name: "made", expiresAt: in1h() } })).status).toBe(
    200,
  );
  expect((await list()).status).toBe(200);
});

test("keys of a project are out of reach of another project's key", async () => {
  const other = await cluster.addProject("Other keys");
  const { id } = await make({});
  expect((await cluster.ask("DELETE", `/api-keys/${id}`, { key: other.key })).status).toBe(404);
  expect((await cluster.ask("PATCH", `/api-keys/${id}`, { key: other.key, body: { name: "x" } })).status).toBe(404);
  expect((await cluster.ask("GET", "/api-keys", { key: other.key })).text).not.toContain(id);
});

test.each([
  ["quotes, as docker run --env-file keeps them", (key: string) => ({ key: `"${key}"` }), "without the quotes"],
  ["the word Bearer", (key: string) => ({ key: `Bearer ${key}` }), "without the word Bearer"],
  ["a variable that no shell has filled in", () => ({ key: "$E2B_API_KEY" }), "not the name of a variable"],
  [
    "the header of tokens",
    (key: string) => ({ key: null, headers: { authorization: `Bearer ${key}` } }),
    "from the X-API-Key header alone",
  ],
])("a key with %s is refused with what is wrong, and not repeated", async (_what, asked, message) => {
  const answer = await cluster.ask("GET", "/v2/sandboxes", asked(cluster.key));
  expect(answer.status).toBe(401);
  expect((answer.body as { message: string }).message).toContain(message);
  expect(answer.text).not.toContain(cluster.key);
});
