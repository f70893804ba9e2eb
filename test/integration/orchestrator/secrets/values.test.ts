/** Nodes fetch the values of placeholders: only for what runs on them and asks for it, and only while the secret exists. */

import { randomBytes, randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { ADMIN_TOKEN, type Answer, type Cluster, NODE_KEY, startCluster } from "../../../support/cluster/cluster.ts";
import { filesWith } from "../../../support/store/files-with.ts";

let cluster: Cluster;
let logged = "";
const log = createLog({
  component: "test",
  level: "trace",
  destination: { write: (line: string) => void (logged += line) },
});
beforeAll(async () => {
  cluster = await startCluster({ log });
});
afterAll(() => cluster.stop());
beforeEach(() => {
  cluster.agent.onEgress = (_policy, set) => set();
});

const ask = (method: string, path: string, body?: object) =>
  cluster.ask(method, path, body === undefined ? {} : { body });

function asNode(path: string, body: object, nodeId = "n1"): Promise<Answer> {
  const headers = { authorization: `Bearer ${nodeToken(NODE_KEY, nodeId, "from node")}` };
  return cluster.ask("POST", path, { key: null, headers, body });
}

const resolve = (executionId: string, asks: string, nodeId = "n1") =>
  asNode("/v1/values", { executionId, asks }, nodeId);

const rules = (value: string) => ({ rules: { "api.test": [{ transform: { headers: { "X-Key": value } } }] } });

/** A running sandbox of a new secret, whose rules name it. */
async function running(name: string, value: string) {
  const made = await ask("POST", "/secrets", { name, value });
  expect(made.status, made.text).toBe(201);
  const network = rules(`Bearer \${svc.secrets.${name.toUpperCase()}}`);
  const created = await ask("POST", "/v2/sandboxes", { templateID: "base", timeout: 600, network });
  expect(created.status, created.text).toBe(201);
  const { sandboxID } = created.body as { sandboxID: string };
  const executionId = () =>
    cluster.agent.starts.findLast(({ body }) => body.sandboxId === sandboxID)?.executionId ?? "";
  return { sandboxID, executionId, asks: `e2b.secrets.${name.toUpperCase()}` };
}

test("a node gets the value that is current, and nothing once the secret is deleted", async () => {
  const { executionId, asks, sandboxID } = await running("life", "hunter2-one");
  const before = Date.now();
  const first = await resolve(executionId(), asks);
  const after = Date.now();
  expect(first.body).toEqual({ value: "hunter2-one", usableUntil: expect.any(Number) as number });
  expect(first.headers.get("cache-control")).toBe("no-store");
  const { usableUntil } = first.body as { usableUntil: number };
  expect(usableUntil).toBeGreaterThanOrEqual(before + 1_000);
  expect(usableUntil).toBeLessThanOrEqual(after + 1_000);
  expect((await ask("POST", "/secrets/life", { value: "hunter2-two" })).status).toBe(200);
  expect((await resolve(executionId(), asks)).body).toMatchObject({ value: "hunter2-two" });

  // A resume is another execution: the former one gets nothing more.
  const former = executionId();
  expect((await ask("POST", `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
  expect((await resolve(former, asks)).status).toBe(403);
  expect((await ask("POST", `/v2/sandboxes/${sandboxID}/connect`, {})).status).toBe(201);
  expect((await resolve(former, asks)).status).toBe(403);
  expect((await resolve(executionId(), asks)).body).toMatchObject({ value: "hunter2-two" });

  expect((await ask("DELETE", "/secrets/life")).status).toBe(204);
  const gone = await resolve(executionId(), asks);
  expect(gone.body).toMatchObject({ code: 404, message: "the secret 'life' does not exist" });
  // The same name again is another secret, and the rules name it.
  await ask("POST", "/secrets", { name: "life", value: "hunter2-three" });
  expect((await resolve(executionId(), asks)).body).toMatchObject({ value: "hunter2-three" });
  expect((await ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
  expect((await resolve(executionId(), asks)).status).toBe(403);

  expect(logged).not.toContain("hunter2");
  expect((await ask("GET", "/events/sandboxes?limit=100")).text).not.toContain("hunter2");
  expect(await filesWith(cluster.folder, "hunter2")).toEqual([]);
  expect(await cluster.database.stored()).not.toContain("hunter2");
});

test("a node gets nothing of another node, of no execution, and nothing that the rules do not ask for", async () => {
  const { executionId, asks } = await running("guarded", "hunter2");
  expect((await ask("POST", "/secrets", { name: "unasked", value: "hunter2" })).status).toBe(201);
  expect((await resolve(executionId(), asks, "n2")).status).toBe(403);
  expect((await resolve(randomUUID(), asks)).status).toBe(403);
  for (const other of [
    "e2b.secrets.unasked",
    "svc.secrets.guarded",
    "e2b.secrets.",
    "guarded",
    "e2b.identity.tokens.guarded",
    `${asks}}\${e2b.secrets.unasked`,
  ]) {
    const answer = await resolve(executionId(), other);
    expect([other, answer.status]).toEqual([other, 403]);
    expect(answer.text).not.toContain("hunter2");
  }
  const body = { executionId: executionId(), asks };
  expect((await ask("POST", "/v1/values", body)).status).toBe(401);
  const wrongWay = { authorization: `Bearer ${nodeToken(NODE_KEY, "n1", "to node")}` };
  expect((await cluster.ask("POST", "/v1/values", { key: null, headers: wrongWay, body })).status).toBe(401);
});

test("a secret of the same name in another project is another secret", async () => {
  const { executionId, asks } = await running("twin", "hunter2-mine");
  const { key } = await cluster.addProject("twins");
  await cluster.ask("POST", "/secrets", { key, body: { name: "twin", value: "hunter2-theirs" } });
  expect((await resolve(executionId(), asks)).body).toMatchObject({ value: "hunter2-mine" });
  await ask("DELETE", "/secrets/twin");
  expect((await resolve(executionId(), asks)).status).toBe(404);
});

test("while a change of the rules is under way, the placeholders of both are resolved, and afterwards of one", async () => {
  const { executionId, asks, sandboxID } = await running("before", "hunter2-before");
  await ask("POST", "/secrets", { name: "after", value: "hunter2-after" });
  const during: unknown[] = [];
  cluster.agent.onEgress = async (_policy, set) => {
    for (const each of [asks, "e2b.secrets.after"]) during.push((await resolve(executionId(), each)).status);
    set();
  };
  expect((await ask("PUT", `/sandboxes/${sandboxID}/network`, rules("${e2b.secrets.after}"))).status).toBe(204);
  expect(during).toEqual([200, 200]);
  expect((await resolve(executionId(), asks)).status).toBe(403);
  expect((await resolve(executionId(), "e2b.secrets.after")).status).toBe(200);
  cluster.agent.onEgress = () => {
    throw new AppError("bad_request", "not that one");
  };
  expect((await ask("PUT", `/sandboxes/${sandboxID}/network`, rules("${e2b.secrets.before}"))).status).toBe(400);
  expect((await resolve(executionId(), "e2b.secrets.after")).status).toBe(200);
});

test("uses are counted once for each report, and shown with the secret", async () => {
  const { executionId, asks } = await running("counted", "hunter2");
  expect((await resolve(executionId(), asks)).status).toBe(200);
  const lastAt = Date.now() - 1_000;
  const use = { executionId: executionId(), asks, host: "api.test", count: 2, lastAt };
  const uses = [use, { ...use, host: "b.test", lastAt: lastAt - 5 }, { ...use, asks: "e2b.identity.tokens.x" }];
  const report = { reportId: randomUUID(), uses };
  for (const nodeId of ["n1", "n1"]) expect((await asNode("/v1/values/uses", report, nodeId)).status).toBe(204);
  expect((await asNode("/v1/values/uses", { ...report, reportId: randomUUID() }, "n2")).status).toBe(204);
  const shown = (await ask("GET", "/secrets/counted")).body;
  expect(shown).toMatchObject({ useCount: 4, lastUsedAt: new Date(lastAt).toISOString() });
  expect((await asNode("/v1/values/uses", { reportId: "x", uses: [] })).status).toBe(400);
});

test("the operator changes the key while the platform runs, and is not told that it is done too early", async () => {
  const { executionId, asks } = await running("rotated", "hunter2-rotated");
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
  const rewrap = async (body?: object) =>
    (await cluster.ask("POST", "/admin/secrets/rewrap", { ...admin, ...(body === undefined ? {} : { body }) })).body;
  const path = join(cluster.folder, "secrets.key");
  const old = await readFile(path, "utf8");
  const fresh = `second ${randomBytes(32).toString("base64")}\n`;
  await writeFile(path, fresh);
  expect(await rewrap()).toMatchObject({ done: false, stillNeeded: [{ keyID: "file:first" }] });
  expect((await resolve(executionId(), asks)).status).toBe(503);
  await writeFile(path, fresh + old);
  expect((await resolve(executionId(), asks)).status).toBe(200);
  expect(await rewrap({})).toMatchObject({ currentKeyID: "file:second", failed: 0, stillNeeded: [], done: true });
  await writeFile(path, fresh);
  expect((await resolve(executionId(), asks)).body).toMatchObject({ value: "hunter2-rotated" });
  expect((await ask("POST", "/admin/secrets/rewrap")).status).toBe(401);
  await cluster.restart();
  await cluster.agent.beat();
  expect((await resolve(executionId(), asks)).body).toMatchObject({ value: "hunter2-rotated" });
});
