/** Keys and projects: each key's rights, the text of refusals, and the immediate end of a revoked key. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { AuthenticationError, Sandbox, SandboxNotFoundError } from "e2b";
import { beforeAll, describe, expect, test } from "vitest";
import { nodeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { api, asAdmin, checkout, openPlatform, readEnvFile } from "../../support/platform/platform.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

interface Key {
  readonly id: string;
  readonly key: string;
  readonly mask: Record<string, unknown>;
}

describe("a project of its own", () => {
  let teamId = "";
  let projectId = "";

  beforeAll(async () => {
    const name = `conformance ${Date.now()}`;
    const reply = await api(platform, "POST", "/admin/projects", { ...asAdmin(platform), body: { name } });
    expect(reply.status).toBe(201);
    ({ teamID: teamId, projectID: projectId } = reply.json as { teamID: string; projectID: string });
  });

  test("has a UUID and a public id, and either is accepted", async () => {
    expect(teamId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-/);
    expect(projectId).toMatch(/^prj_/);
    for (const id of [teamId, projectId]) {
      const headers = { "x-admin-token": platform.adminToken, "x-team-id": id };
      expect((await api(platform, "GET", "/v2/sandboxes", { key: null, headers })).status).toBe(200);
    }
  });

  test("the files of `up` are private, and only one of them has the operators' token", () => {
    const suffix = platform.instance === "" ? "" : `-${platform.instance}`;
    const [users, operators] = [`${checkout}.svc${suffix}/env`, `${platform.paths.etc}/admin-token`];
    for (const file of readdirSync(platform.paths.etc)) {
      const text = readFileSync(`${platform.paths.etc}/${file}`, "utf8");
      expect(text.includes(platform.adminToken), file).toBe(file === "admin-token");
    }
    expect(process.env.E2B_API_KEY).toMatch(/^e2b_[0-9a-f]{40}$/);
    expect(process.env.E2B_API_KEY?.slice(4)).toBe(platform.apiKey.slice(4));
    expect(platform.apiKey).toMatch(/^svc_[0-9a-f]{40}$/);
    expect(readFileSync(users, "utf8")).not.toMatch(/ADMIN/);
    expect(readFileSync(users, "utf8")).not.toContain(platform.adminToken);
    for (const file of [users, operators]) expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  });

  test("the node's token in the settings of `up` is valid neither for the orchestrator nor for other nodes", () => {
    const read = (file: string) => readEnvFile(`${platform.paths.etc}/${file}`);
    const [orchestrator, agent] = [read("orchestrator.env"), read("agent.env")];
    const key = orchestrator.get("SVC_NODE_KEY") ?? "";
    expect(key).toMatch(/^[\w-]{43}$/);
    expect([...agent.values()]).not.toContain(key);
    const nodeId = agent.get("SVC_NODE_ID") ?? "";
    expect(agent.get("SVC_NODE_TOKEN")).toBe(nodeToken(key, nodeId, "from node"));
    expect(agent.get("SVC_ORCHESTRATOR_TOKEN")).toBe(nodeToken(key, nodeId, "to node"));
    expect([orchestrator.get("SVC_NODE_TOKEN"), agent.get("SVC_NODE_KEY")]).toEqual([undefined, undefined]);
    const sealKey = `${platform.paths.etc}/seal.key`;
    expect((statSync(sealKey).mode & 0o777).toString(8)).toBe("600");
  });

  test("a new key works, is shown once, and is masked from then on", async () => {
    const key = await makeKey(teamId);
    expect(key.key).toMatch(/^svc_\S{20,}$/);
    expect(key.mask).toMatchObject({ prefix: "svc_" });
    const headers = { "x-admin-token": platform.adminToken, "x-team-id": teamId };
    const listed = await api(platform, "GET", "/api-keys", { key: null, headers });
    expect(listed.status).toBe(200);
    expect(listed.text).toContain(key.id);
    expect(listed.text).not.toContain(key.key);
    expect((await api(platform, "GET", "/v2/sandboxes", { key: key.key })).status).toBe(200);
  });

  test("a key with the scope `sandboxes` alone is enough for a sandbox of the SDK, and for nothing else", async () => {
    const key = await makeKey(teamId, {
      scopes: ["sandboxes"],
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const sandbox = await Sandbox.create("base", { apiKey: key.key });
    try {
      expect((await sandbox.commands.run("echo hello")).stdout).toBe("hello\n");
      expect(await sandbox.files.write("a.txt", "text")).toMatchObject({ name: "a.txt" });
      expect((await Sandbox.getInfo(sandbox.sandboxId, { apiKey: key.key })).sandboxId).toBe(sandbox.sandboxId);
    } finally {
      await sandbox.kill();
    }
    for (const [path, lacked] of [
      ["/templates", "read"],
      ["/api-keys", "read"],
    ] as const) {
      const reply = await api(platform, "GET", path, { key: key.key });
      expect([reply.status, reply.text]).toEqual([403, expect.stringContaining(`lacks the scope '${lacked}'`)]);
    }
    const more = { key: key.key, body: { name: "more" } };
    expect((await api(platform, "POST", "/api-keys", more)).text).toContain("lacks the scope 'admin'");
  });

  test("a revoked key is refused from the same moment on, also by the SDK", async () => {
    const key = await makeKey(teamId);
    for (let round = 0; round < 5; round++) {
      expect((await api(platform, "GET", "/v2/sandboxes", { key: key.key })).status).toBe(200);
    }
    const gone = await api(platform, "DELETE", `/admin/teams/${teamId}/api-keys/${key.id}`, asAdmin(platform));
    expect(gone.status).toBe(204);
    const reply = await api(platform, "GET", "/v2/sandboxes", { key: key.key });
    expect([reply.status, reply.json]).toEqual([401, expect.objectContaining({ code: 401 })]);
    expect(await refusal(Sandbox.create({ apiKey: key.key }))).toBeInstanceOf(AuthenticationError);
  });

  test("a key gets 404 for another project's sandbox", async () => {
    const sandbox = await ownSandbox();
    const key = await makeKey(teamId);
    const options = { apiKey: key.key };
    expect(await Sandbox.kill(sandbox.sandboxId, options)).toBe(false);
    expect(await refusal(Sandbox.connect(sandbox.sandboxId, options))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(Sandbox.getInfo(sandbox.sandboxId, options))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(Sandbox.setTimeout(sandbox.sandboxId, 1000, options))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(Sandbox.getMetrics(sandbox.sandboxId, options))).toBeInstanceOf(SandboxNotFoundError);
    expect(await Sandbox.list(options).nextItems()).toEqual([]);
    const path = `/sandboxes/metrics?sandbox_ids=${sandbox.sandboxId}`;
    expect((await api(platform, "GET", path, { key: key.key })).json).toEqual({ sandboxes: {} });
    expect(await sandbox.isRunning()).toBe(true);
  });
});

describe("refusals", () => {
  test("missing, malformed, unknown and discontinued keys have four different messages", async () => {
    const unknown = `svc_${"0".repeat(platform.apiKey.length - 4)}`;
    const replies = await Promise.all([
      api(platform, "GET", "/v2/sandboxes", { key: null }),
      api(platform, "GET", "/v2/sandboxes", { key: "not a key" }),
      api(platform, "GET", "/v2/sandboxes", { key: unknown }),
      api(platform, "GET", "/v2/sandboxes", {
        key: null,
        headers: { authorization: "Bearer sk_svc_0123456789abcdef" },
      }),
    ]);
    for (const reply of replies) {
      expect(reply.status).toBe(401);
      expect(reply.json).toMatchObject({ code: 401, message: expect.any(String) as string });
      expect(reply.headers.get("access-control-allow-origin")).toBe("*");
    }
    expect(new Set(replies.map((reply) => (reply.json as { message: string }).message)).size).toBe(4);
  });

  test("a key with the other prefix is a key too: unknown, not malformed", async () => {
    const messages = await Promise.all(
      ["svc_", "e2b_"].map(async (prefix) => {
        const key = prefix + "0".repeat(platform.apiKey.length - 4);
        return ((await api(platform, "GET", "/v2/sandboxes", { key })).json as { message: string }).message;
      }),
    );
    expect(messages[0]).toBe(messages[1]);
  });

  test("a refused key is in no message", async () => {
    const reply = await api(platform, "GET", "/v2/sandboxes", { key: `svc_${"f".repeat(40)}` });
    expect(reply.text).not.toContain("f".repeat(40));
  });

  test("admin routes need the admin token", async () => {
    for (const path of ["/nodes", "/admin/sandboxes/running-counts"]) {
      expect((await api(platform, "GET", path)).status).toBe(401);
      expect((await api(platform, "GET", path, { key: null, headers: { "x-admin-token": "wrong" } })).status).toBe(401);
      expect((await api(platform, "GET", path, asAdmin(platform))).status).toBe(200);
    }
  });

  test("a preflight needs no key, on any route", async () => {
    for (const path of ["/v2/sandboxes", "/no/such/route"]) {
      const headers = { origin: "http://page.example", "access-control-request-method": "POST" };
      const reply = await api(platform, "OPTIONS", path, { key: null, headers });
      expect(reply.status).toBe(204);
      expect(reply.headers.get("access-control-allow-origin")).toBe("*");
      expect(reply.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("x-api-key");
    }
  });

  test("health needs no key; an unknown route is a 404 with the error body", async () => {
    expect((await api(platform, "GET", "/health", { key: null })).status).toBe(204);
    const reply = await api(platform, "GET", "/no/such/route");
    expect([reply.status, reply.json]).toEqual([404, expect.objectContaining({ code: 404 })]);
  });
});

async function makeKey(teamId: string, limits: object = {}): Promise<Key> {
  const path = `/admin/teams/${teamId}/api-keys`;
  const reply = await api(platform, "POST", path, { ...asAdmin(platform), body: { name: "conformance", ...limits } });
  expect(reply.status).toBe(201);
  return reply.json as Key;
}
