/** Secrets from callers are in no file of the orchestrator, in no line of its log and in no event. */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { buildingOn } from "../../../support/cluster/building.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { filesWith } from "../../../support/store/files-with.ts";

const ALL = "0.0.0.0/0";

const OPTIONS = { config: { buildPollMs: 20, patienceMs: 300 } };

let cluster: Cluster;
let logged: string;
const destination = { write: (line: string) => void (logged += line) };
const log = createLog({ component: "test", level: "trace", destination });
beforeEach(async () => {
  logged = "";
  cluster = await startCluster({ ...OPTIONS, log });
});
afterEach(() => cluster.stop());

const { request, start, status } = buildingOn(() => cluster);

/** `name` shows which of the secrets a test has found. */
const secretsOf = (name: string) => ({
  header: `hunter2-header-${name}`,
  password: `hunter2-password-${name}`,
  env: `hunter2-env-${name}`,
});

function network(name: string) {
  const { header, password } = secretsOf(name);
  return {
    denyOut: [ALL],
    allowOut: ["api.example.com"],
    rules: { "api.example.com": [{ transform: { headers: { "X-Key": header } } }] },
    egressProxy: { address: "198.51.100.1:1080", username: "me", password },
  };
}

function ask(method: string, path: string, body?: object): Promise<Answer> {
  return cluster.ask(method, path, body === undefined ? {} : { body });
}

async function nowhere(name: string): Promise<void> {
  const events = await ask("GET", "/events/sandboxes?limit=100");
  for (const secret of Object.values(secretsOf(name))) {
    expect(await filesWith(cluster.folder, secret), secret).toEqual([]);
    expect(await cluster.database.stored(), secret).not.toContain(secret);
    expect(logged, secret).not.toContain(secret);
    expect(events.text, secret).not.toContain(secret);
  }
}

test("a sandbox's secrets are stored and logged nowhere through create, update, snapshot, fork, pause, resume and kill", async () => {
  const created = await ask("POST", "/v2/sandboxes", {
    templateID: "base",
    network: network("create"),
    envVars: { KEY: secretsOf("create").env },
  });
  expect(created.status, created.text).toBe(201);
  const { sandboxID } = created.body as { sandboxID: string };
  // The node gets the password, and the owner reads back the rules.
  expect(cluster.agent.starts.at(-1)?.body.egress.proxy?.password).toBe(secretsOf("create").password);
  const read = async () => (await ask("GET", `/sandboxes/${sandboxID}`)).body as SandboxDetail;
  expect((await read()).network?.rules).toEqual(network("create").rules);
  await nowhere("create");

  cluster.agent.onEgress = () => {
    throw new AppError("internal", "not now");
  };
  expect((await ask("PUT", `/sandboxes/${sandboxID}/network`, network("refused"))).status).toBeGreaterThanOrEqual(400);
  await nowhere("refused");
  cluster.agent.onEgress = (_policy, set) => set();
  const updated = await ask("PUT", `/sandboxes/${sandboxID}/network`, network("update"));
  expect(updated.status, updated.text).toBe(204);
  expect((await read()).network?.rules).toEqual(network("update").rules);
  await nowhere("update");

  expect((await ask("POST", `/sandboxes/${sandboxID}/snapshots`, {})).status).toBe(201);
  expect((await ask("POST", `/sandboxes/${sandboxID}/fork`, { timeout: 60 })).status).toBe(201);
  expect(cluster.agent.starts.at(-1)?.body.egress.rules).toEqual([
    { host: "api.example.com", headers: { "X-Key": secretsOf("update").header } },
  ]);
  expect((await ask("POST", `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
  await cluster.restart();
  await cluster.agent.beat();
  expect((await ask("POST", `/v2/sandboxes/${sandboxID}/connect`, {})).status).toBe(201);
  expect(cluster.agent.starts.at(-1)?.body.egress.proxy?.password).toBe(secretsOf("update").password);
  for (const name of ["create", "update", "refused"]) await nowhere(name);
  expect((await ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
  for (const name of ["create", "update"]) await nowhere(name);
});

test("secrets of a refused body are stored, logged and repeated nowhere", async () => {
  const { password, header } = secretsOf("wrong");
  for (const wrong of [
    { ...network("wrong"), denyOut: ["nonsense!"] },
    { ...network("wrong"), egressProxy: { address: "no-port", username: "me", password } },
    { ...network("wrong"), rules: { "*": [{ transform: { headers: { "X-Key": header } } }] } },
  ]) {
    const answer = await ask("POST", "/v2/sandboxes", { templateID: "base", network: wrong });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toMatch(/hunter2/);
  }
  await nowhere("wrong");
});

test("the registry's credentials of a build are stored and logged nowhere", async () => {
  const app = await request({ name: "app" });
  const access = { type: "registry", username: "u", password: secretsOf("build").password };
  expect((await start(app, { fromImage: "a/b", fromImageRegistry: access })).status).toBe(202);
  await expect.poll(() => status(app)).toMatchObject({ status: "ready" });
  await nowhere("build");
});
