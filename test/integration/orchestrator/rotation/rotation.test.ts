/** Tokens, seeds and keys are replaced while sandboxes run: the earlier ones stay valid until nothing uses them. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import type { Rotation } from "../../../../shared/api/keys/rotation.ts";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { envdToken } from "../../../../shared/ids.ts";
import { ADMIN_TOKEN, type Cluster, NODE_KEY, startCluster } from "../../../support/cluster/cluster.ts";
import { startFakeAgent } from "../../../support/fakes/fake-agent.ts";

const SEED = "test-seed-0000000001";
const ENCRYPTION_KEY = "test-encryption-key-1";
const PASSWORD = "hunter2-password";

let cluster: Cluster;
beforeEach(async () => {
  // The node reports when a test says so: a report by the clock would come with the token that a test has just replaced.
  cluster = await startCluster({ agent: { heartbeatMs: 0 }, config: { nodeTimeoutMs: 600_000, nodeLostMs: 600_000 } });
});
afterEach(() => cluster.stop());

const operator = (token = ADMIN_TOKEN) => ({ key: null, headers: { "x-admin-token": token } });

async function state(): Promise<Rotation> {
  const answer = await cluster.ask("GET", "/admin/rotation", operator());
  expect(answer.status, answer.text).toBe(200);
  return answer.body as Rotation;
}

async function create(): Promise<Sandbox> {
  const created = await cluster.ask("POST", "/v2/sandboxes", {
    body: {
      templateID: "base",
      timeout: 600,
      envVars: { KEY: "hunter2" },
      network: {
        allowPublicTraffic: false,
        egressProxy: { address: "198.51.100.1:1080", username: "me", password: PASSWORD },
      },
    },
  });
  expect(created.status, created.text).toBe(201);
  return created.body as Sandbox;
}

async function pauseAndResume({ sandboxID }: Sandbox): Promise<Sandbox> {
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
  const resumed = await cluster.ask("POST", `/v2/sandboxes/${sandboxID}/connect`);
  expect(resumed.status, resumed.text).toBe(201);
  return resumed.body as Sandbox;
}

test("a sandbox keeps its tokens under a new seed, over restart, pause and resume; new sandboxes and forks get the new seed", async () => {
  const before = await create();
  expect(before.envdAccessToken).toBe(envdToken(SEED, before.sandboxID));
  await cluster.restart({ seed: "the second seed of it", seedPrevious: SEED });
  await cluster.agent.beat();
  const tokens = { envdAccessToken: before.envdAccessToken, trafficAccessToken: before.trafficAccessToken };
  expect(await pauseAndResume(before)).toMatchObject(tokens);
  expect(cluster.agent.starts.at(-1)?.body.accessToken).toBe(before.envdAccessToken);
  const fork = await cluster.ask("POST", `/sandboxes/${before.sandboxID}/fork`, { body: {} });
  const [forked] = fork.body as { sandbox: Sandbox }[];
  for (const made of [forked?.sandbox, await create()]) {
    expect(made?.envdAccessToken).toBe(envdToken("the second seed of it", made?.sandboxID ?? ""));
  }
  // A second replacement before the first sandbox has ended.
  const third = { seed: "the third seed of it", seedPrevious: `the second seed of it,${SEED}` };
  await cluster.restart(third);
  await cluster.agent.beat();
  expect(await pauseAndResume(before)).toMatchObject(tokens);
  expect((await state()).sandboxSeed).toEqual({ previous: 2, sandboxes: 3, removable: false });
  const list = (await cluster.ask("GET", "/v2/sandboxes")).body as { sandboxID: string }[];
  for (const { sandboxID } of list) await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  await expect.poll(async () => (await state()).sandboxSeed).toEqual({ previous: 2, sandboxes: 0, removable: true });
});

test("a record from before seeds were recorded has the oldest seed", async () => {
  const before = await create();
  await cluster.restart({ seed: "the second seed of it", seedPrevious: SEED }, async () => {
    await cluster.database.query("update sandboxes set seed_id = null");
  });
  await cluster.agent.beat();
  expect(await pauseAndResume(before)).toMatchObject({ envdAccessToken: before.envdAccessToken });
  expect((await state()).sandboxSeed).toEqual({ previous: 1, sandboxes: 1, removable: false });
});

test("all sealed values are renewed under a new encryption key, wherever the orchestrator dies, and then the earlier key is not needed", async () => {
  const sandbox = await create();
  const sealed = async () =>
    (await cluster.database.query("select id, envs, network, proxy_password from sandboxes")) as Record<
      string,
      string
    >[];
  const [former] = await sealed();
  const next = { encryptionKey: "the second encryption key", encryptionKeyPrevious: ENCRYPTION_KEY };
  const done = { previous: 1, values: 0, unreadable: 0, removable: true };
  await cluster.restart(next);
  await expect.poll(async () => (await state()).encryptionKey).toEqual(done);
  const [renewed] = await sealed();
  for (const column of ["envs", "network", "proxy_password"]) expect(renewed?.[column]).not.toBe(former?.[column]);
  // Dies after some of the values: the next start goes on with the others.
  await cluster.restart({}, async () => {
    await cluster.database.query("update sandboxes set network = ?, envs = ?", former?.["network"], former?.["envs"]);
  });
  await expect.poll(async () => (await state()).encryptionKey).toEqual(done);
  await cluster.restart({ ...next, encryptionKeyPrevious: "" });
  await cluster.agent.beat();
  await pauseAndResume(sandbox);
  expect(cluster.agent.starts.at(-1)?.body).toMatchObject({ envs: { KEY: "hunter2" } });
  expect(cluster.agent.starts.at(-1)?.body.egress.proxy?.password).toBe(PASSWORD);
});

test("a value that opens with no key is counted, and does not keep the earlier key", async () => {
  await create();
  await cluster.restart(
    { encryptionKey: "the second encryption key", encryptionKeyPrevious: ENCRYPTION_KEY },
    async () => {
      await cluster.database.query("update sandboxes set envs = ?", `v1:${"A".repeat(80)}`);
    },
  );
  const found = { previous: 1, values: 1, unreadable: 1, removable: true };
  await expect.poll(async () => (await state()).encryptionKey).toEqual(found);
});

test("nodes change over to a new key one after another, and are called with tokens of the key that they use", async () => {
  const next = "the second node key of it";
  await cluster.restart({ nodeKey: next, nodeKeyPrevious: NODE_KEY });
  // Not heard since the restart: the recorded key decides.
  await create();
  await cluster.agent.beat();
  await create();
  expect((await state()).nodeKey).toEqual({ previous: 1, nodes: ["n1"], removable: false });
  const second = await startFakeAgent({
    orchestratorUrl: cluster.url,
    nodeId: "n2",
    nodeToken: nodeToken(next, "n2", "from node"),
    orchestratorToken: nodeToken(next, "n2", "to node"),
  });
  try {
    expect((await cluster.ask("POST", "/nodes/n1", { ...operator(), body: { status: "draining" } })).status).toBe(204);
    await create();
    expect(second.live.size).toBe(1);
    expect((await state()).nodeKey).toMatchObject({ nodes: ["n1"] });
    // The first node gets its new tokens: the next call goes out with the new one.
    const moved = { key: null, headers: { authorization: `Bearer ${nodeToken(next, "n1", "from node")}` } };
    expect((await cluster.ask("POST", "/internal/nodes/n1/exits", { ...moved, body: { exits: [] } })).status).toBe(204);
    expect((await state()).nodeKey).toEqual({ previous: 1, nodes: [], removable: true });
  } finally {
    await second.stop();
  }
});

test("operators' tokens come from a file that is read again when it changes, each until its end", async () => {
  const file = join(cluster.folder, "admin-token");
  const [first, second] = ["the-first-admin-token-1", "the-second-admin-token-2"];
  const status = async (token: string) => (await cluster.ask("GET", "/admin/projects", operator(token))).status;
  await writeFile(file, `${first}\n`, { mode: 0o600 });
  await cluster.restart({ adminTokenFile: file });
  expect([await status(first), await status(second), await status(ADMIN_TOKEN)]).toEqual([200, 401, 200]);
  await writeFile(file, `${second}\n${first} 2999-01-01T00:00:00Z\n`);
  expect([await status(first), await status(second)]).toEqual([200, 200]);
  await writeFile(file, `${second}\n${first} 2020-01-01T00:00:00Z\n\n# a note\nshort\n`);
  expect([await status(first), await status(second), await status("short"), await status("# a note")]).toEqual([
    401, 200, 401, 401,
  ]);
});

test("the metrics token and the one before it may read the metrics", async () => {
  await cluster.restart({ metricsToken: "the-second-metrics-token", metricsTokenPrevious: "the-first-metrics-token" });
  const status = async (token: string) =>
    (await cluster.ask("GET", "/metrics", { key: null, headers: { authorization: `Bearer ${token}` } })).status;
  expect(await status("the-second-metrics-token")).toBe(200);
  expect(await status("the-first-metrics-token")).toBe(200);
  expect(await status("the-first-metrics-token,")).toBe(401);
  expect((await state()).metricsToken).toEqual({ previous: 1 });
});
