/** Requests of older SDKs, the CLI and the Python SDK: the first version's routes, their bodies, and templates. */

import { Sandbox } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { stream, targetOf, unary } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const headers = { "user-agent": "e2b-python-sdk/2.45.1", lang: "python", package_version: "2.45.1", publisher: "e2b" };

describe("the first version of create and connect", () => {
  test("the body that old clients always send makes a sandbox, and its internet choice is read back", async () => {
    const body = {
      templateID: "base",
      timeout: 300,
      secure: true,
      allow_internet_access: true,
      metadata: {},
      envVars: {},
    };
    const reply = await api(platform, "POST", "/sandboxes", { body, headers });
    expect(reply.status).toBe(201);
    const id = cleanUp(reply.json);
    const detail = (await api(platform, "GET", `/sandboxes/${id}`)).json as Record<string, unknown>;
    expect(detail.allowInternetAccess).toBe(true);
    const sandbox = await Sandbox.connect(id);
    expect((await sandbox.commands.run("echo ok")).stdout).toBe("ok\n");
  });

  test("the default time-out is fifteen seconds; that of the second version is three hundred", async () => {
    for (const [path, seconds] of [["/sandboxes", 15] as const, ["/v2/sandboxes", 300] as const]) {
      const detail = await detailOfNew(path);
      const lifetime = (Date.parse(detail.endAt) - Date.parse(detail.startedAt)) / 1000;
      expect(lifetime).toBeGreaterThan(seconds - 2);
      expect(lifetime).toBeLessThan(seconds + 5);
    }
  });

  /** Makes another sandbox where the machine stood still until the first one was over. */
  async function detailOfNew(path: string): Promise<{ startedAt: string; endAt: string }> {
    let status = 0;
    for (let tries = 0; tries < 3; tries++) {
      const reply = await api(platform, "POST", path, { body: { templateID: "base" } });
      const detail = await api(platform, "GET", `/sandboxes/${cleanUp(reply.json)}`);
      if (detail.status === 200) return detail.json as { startedAt: string; endAt: string };
      status = detail.status;
    }
    throw new Error(`none of three new sandboxes was there; the last answer was ${status}`);
  }

  test("connect needs a time-out and only extends the sandbox's end", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 60_000 });
    const before = await sandbox.getInfo();
    const path = `/sandboxes/${sandbox.sandboxId}/connect`;
    expect((await api(platform, "POST", path, { body: { timeout: 5 } })).status).toBe(200);
    expect((await sandbox.getInfo()).endAt).toEqual(before.endAt);
    const longer = await api(platform, "POST", path, { body: { timeout: 600 } });
    expect(longer.json).toMatchObject({ sandboxID: sandbox.sandboxId, envdVersion: "0.6.13" });
    expect((await sandbox.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(300_000);
  });

  test("resume of a running sandbox is refused with 409", async () => {
    const sandbox = await ownSandbox();
    const reply = await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/resume`, { body: { timeout: 60 } });
    expect([reply.status, (reply.json as { code: number }).code]).toEqual([409, 409]);
  });

  test("request bodies are accepted with and without a length", async () => {
    const body = new Blob([JSON.stringify({ templateID: "base", timeout: 30 })]).stream();
    const response = await fetch(`${platform.apiUrl}/v2/sandboxes`, {
      method: "POST",
      headers: { "x-api-key": platform.apiKey, "content-type": "application/json" },
      body,
      duplex: "half",
    });
    expect(response.status).toBe(201);
    cleanUp(await response.json());
  });
});

describe("the calls of the Python SDK", () => {
  test("unary calls with a deadline and a user by Basic authentication succeed, and so does a command with default values", async () => {
    const sandbox = await ownSandbox();
    const target = await targetOf(platform, sandbox.sandboxId);
    const deadline = { "connect-timeout-ms": "60000", "user-agent": headers["user-agent"] };
    const made = await unary(platform, target, "filesystem.Filesystem/MakeDir", {
      message: { path: "py" },
      user: "root",
      headers: deadline,
    });
    expect(made.json).toMatchObject({ entry: { path: "/root/py", owner: "root", type: "FILE_TYPE_DIRECTORY" } });
    const again = await unary(platform, target, "filesystem.Filesystem/MakeDir", {
      message: { path: "py" },
      user: "root",
      headers: deadline,
    });
    expect([again.status, (again.json as { code: string }).code]).toEqual([409, "already_exists"]);
    const message = {
      process: { cmd: "/bin/bash", envs: {}, args: ["-l", "-c", "echo $HOME"], cwd: "" },
      tag: "",
      stdin: false,
    };
    const values: string[] = [];
    for await (const one of stream(platform, target, "process.Process/Start", {
      message,
      user: "root",
      headers: deadline,
    })) {
      values.push(JSON.stringify(one.value));
    }
    expect(values.join()).toContain(Buffer.from("/root\n").toString("base64"));
    const missing = await unary(platform, target, "filesystem.Filesystem/Stat", {
      message: { path: "no" },
      headers: deadline,
    });
    expect([missing.status, (missing.json as { code: string }).code]).toEqual([404, "not_found"]);
  });
});

test("Python clients of mid 2025 get entries with name, type and path alone", async () => {
  const sandbox = await ownSandbox();
  const target = await targetOf(platform, sandbox.sandboxId);
  const call = { message: { path: "/etc" }, headers: { "user-agent": "connect-python" } };
  const listed = await unary(platform, target, "filesystem.Filesystem/ListDir", call);
  const { entries } = listed.json as { entries: object[] };
  expect(new Set(entries.flatMap((entry) => Object.keys(entry)))).toEqual(new Set(["name", "type", "path"]));
});

describe("templates that exist", () => {
  const template = {
    templateID: expect.stringMatching(/^[a-z0-9]+$/) as string,
    buildID: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    public: expect.any(Boolean) as boolean,
    cpuCount: expect.any(Number) as number,
    memoryMB: expect.any(Number) as number,
    diskSizeMB: expect.any(Number) as number,
    createdAt: expect.any(String) as string,
    updatedAt: expect.any(String) as string,
    spawnCount: expect.any(Number) as number,
    buildCount: expect.any(Number) as number,
    envdVersion: expect.any(String) as string,
    aliases: expect.arrayContaining(["base"]) as string[],
    names: expect.any(Array) as string[],
    buildStatus: "ready",
  };

  test.each(["/templates", "/v2/templates"])("%s has base, with every required field", async (path) => {
    const reply = await api(platform, "GET", path);
    expect(reply.status).toBe(200);
    const base = (reply.json as { aliases: string[] }[]).find((one) => one.aliases.includes("base"));
    expect(base).toMatchObject(template);
    expect(base).toHaveProperty("createdBy");
    expect(base).toHaveProperty("lastSpawnedAt");
  });

  test("an alias leads to its template, and an unknown alias is not found", async () => {
    const found = await api(platform, "GET", "/templates/aliases/base");
    expect([found.status, found.json]).toEqual([200, expect.objectContaining({ templateID: template.templateID })]);
    const id = (found.json as { templateID: string }).templateID;
    expect((await api(platform, "GET", `/templates/${id}`)).json).toMatchObject({
      templateID: id,
      builds: expect.any(Array) as [],
    });
    expect((await api(platform, "GET", "/templates/aliases/no-such")).status).toBe(404);
    expect((await api(platform, "GET", "/templates/aliases/no%2Fsuch%3Atag")).status).toBe(404);
  });
});

function cleanUp(created: unknown): string {
  const id = (created as { sandboxID: string }).sandboxID;
  onTestFinished(async () => {
    await Sandbox.kill(id);
  });
  return id;
}
