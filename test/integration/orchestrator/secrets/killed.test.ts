/**
 * The orchestrator is killed (SIGKILL) in the middle of a new version, of a deletion and of a change of the key: afterwards the
 * old state or the new one is there, and never neither. SVC_SECRET_KILLS=50 kills it as often in each of them.
 */

import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AS_ADMIN, AS_NODE, type MortalCluster, startMortalCluster } from "../../../support/cluster/mortal-cluster.ts";

const KILLS = Number(process.env["SVC_SECRET_KILLS"] ?? "3");
/** A change takes about as long as this; each kill comes at another moment of it. */
const LONGEST_MS = 12;
const LIMIT_MS = 60_000 + KILLS * 10_000;

const newKey = (name: string) => `${name} ${randomBytes(32).toString("base64")}\n`;

let folder: string;
let keys: string;
let cluster: MortalCluster;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-secrets-killed-"));
  keys = join(folder, "secrets.key");
  await writeFile(keys, newKey("key-0"), { mode: 0o600 });
  cluster = await startMortalCluster({ SVC_SECRETS_KEY_FILE: keys });
}, 120_000);
afterAll(async () => {
  await cluster.stop();
  await rm(folder, { recursive: true, force: true });
}, 60_000);

const ask = (method: string, path: string, body?: object) => cluster.ask(method, path, body);
const rewrap = () => cluster.ask("POST", "/admin/secrets/rewrap", {}, AS_ADMIN);

/** Kills the orchestrator in the middle of a request. True: the request was answered before. */
async function killedIn(request: () => Promise<{ readonly status: number }>, kill: number): Promise<boolean> {
  const answered = request().then(
    ({ status }) => status < 300,
    () => false,
  );
  await delay((LONGEST_MS * kill) / KILLS);
  await cluster.orchestrator.killAndStart();
  await cluster.agent.beat();
  return answered;
}

/** A running sandbox whose rules name a secret. Resolves to what its node gets for it. */
async function sandboxOf(name: string): Promise<() => Promise<unknown>> {
  const rule = { transform: { headers: { "X-Key": `\${svc.secrets.${name}}` } } };
  const body = { templateID: "base", timeout: 3_000, network: { rules: { "api.test": [rule] } } };
  const created = await ask("POST", "/v2/sandboxes", body);
  expect(created.status, created.text).toBe(201);
  const { sandboxID } = created.body as { sandboxID: string };
  const executionId = cluster.agent.starts.findLast(({ body: start }) => start.sandboxId === sandboxID)?.executionId;
  return async () => {
    const answer = await cluster.ask("POST", "/v1/values", { executionId, asks: `e2b.secrets.${name}` }, AS_NODE);
    return answer.status === 200 ? (answer.body as { value: string }).value : answer.status;
  };
}

const versionOf = async (name: string) =>
  ((await ask("GET", `/secrets/${name}`)).body as { currentVersion: number }).currentVersion;

/** Changes of a secret that the audit log has, and whether the log is whole. */
async function audited(action: string): Promise<number> {
  expect((await cluster.ask("GET", "/admin/audit/verify", undefined, AS_ADMIN)).body).toMatchObject({ whole: true });
  const { body } = await ask("GET", `/audit?action=${action}&limit=100`);
  return (body as { result: string }[]).filter(({ result }) => result === "begun" || result === "done").length;
}

test("a kill in the middle of a new version leaves the former value or the new one, and its audit entry", {
  timeout: LIMIT_MS,
}, async () => {
  await ask("POST", "/secrets", { name: "versioned", value: "value-0" });
  const value = await sandboxOf("versioned");
  let current = "value-0";
  let changes = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const next = `value-${kill + 1}`;
    const before = await versionOf("versioned");
    const answered = await killedIn(() => ask("POST", "/secrets/versioned", { value: next }), kill);
    const now = await value();
    expect(answered ? [next] : [current, next]).toContain(now);
    expect(await versionOf("versioned")).toBe(now === next ? before + 1 : before);
    if (now === next) changes++;
    current = String(now);
    expect(await audited("updateSecret")).toBe(changes);
  }
});

test("a kill in the middle of a deletion leaves the whole secret or nothing of it", { timeout: LIMIT_MS }, async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    const name = `deleted-${kill}`;
    await ask("POST", "/secrets", { name, value: "there" });
    const value = await sandboxOf(name);
    const answered = await killedIn(() => ask("DELETE", `/secrets/${name}`), kill);
    const { status } = await ask("GET", `/secrets/${name}`);
    expect(answered ? [404] : [200, 404]).toContain(status);
    expect(await value()).toBe(status === 200 ? "there" : 404);
    expect((await ask("DELETE", `/secrets/${name}`)).status).toBe(status === 200 ? 204 : 404);
    expect(await value()).toBe(404);
    expect(await audited("deleteSecret")).toBe(kill + 1);
  }
});

test("a kill while the data keys are encrypted with a new key loses no value, and the next call ends the change", {
  timeout: LIMIT_MS,
}, async () => {
  const names = Array.from({ length: 15 }, (_, index) => `kept-${index}`);
  for (const name of names) await ask("POST", "/secrets", { name, value: `value of ${name}` });
  const values = await Promise.all(names.map(sandboxOf));
  const all = async () => Promise.all(values.map((value) => value()));
  const wanted = names.map((name) => `value of ${name}`);
  let former = await readFile(keys, "utf8");
  for (let kill = 0; kill < KILLS; kill++) {
    const fresh = newKey(`key-${kill + 1}`);
    await writeFile(keys, fresh + former);
    await killedIn(() => rewrap(), kill);
    expect(await all()).toEqual(wanted);
    expect((await rewrap()).body).toMatchObject({
      currentKeyID: `file:key-${kill + 1}`,
      done: true,
    });
    await writeFile(keys, fresh);
    former = fresh;
    expect(await all()).toEqual(wanted);
  }
});
