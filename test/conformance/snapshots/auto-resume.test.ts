/** Traffic resumes a paused sandbox that was created with auto-resume, if the visitor may reach it. */

import { Sandbox, type SandboxOpts } from "e2b";
import { describe, expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { startCounter, startFileServer, visit } from "../../support/sandbox/pausing.ts";
import { targetOf } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const PORT = 8000;
const lifecycle = { onTimeout: "pause", autoResume: true } as const;

/** Makes a paused sandbox in which a server was listening. */
async function pausedSandbox(options: SandboxOpts = {}): Promise<Sandbox> {
  const sandbox = await ownSandbox({ lifecycle, ...options });
  await startFileServer(sandbox, PORT, "awake");
  await sandbox.pause();
  return sandbox;
}

const stateOf = async (sandbox: Sandbox) => (await Sandbox.getInfo(sandbox.sandboxId)).state;

describe("a paused sandbox resumes", () => {
  test("for a request to a port, which the server that was listening answers", async () => {
    const sandbox = await pausedSandbox({ timeoutMs: 120_000 });
    expect((await sandbox.getInfo()).lifecycle).toEqual(lifecycle);
    expect(await visit(platform, sandbox, { port: PORT })).toEqual({ status: 200, text: "awake" });
    expect(await stateOf(sandbox)).toBe("running");
    const { endAt } = await sandbox.getInfo();
    expect(endAt.getTime() - Date.now()).toBeGreaterThan(200_000);
  });

  test("for many requests at once, which are all answered", async () => {
    const sandbox = await pausedSandbox();
    const answers = await Promise.all(Array.from({ length: 10 }, () => visit(platform, sandbox, { port: PORT })));
    expect(answers).toEqual(answers.map(() => ({ status: 200, text: "awake" })));
  });

  test("for a command, whose processes find the others where they were", async () => {
    const sandbox = await ownSandbox({ lifecycle });
    const counter = await startCounter(sandbox);
    await sandbox.pause();
    expect((await sandbox.commands.run("echo awake")).stdout).toBe("awake\n");
    const count = await counter.read();
    await expect.poll(() => counter.read()).toBeGreaterThan(count);
  });

  test("for a file, also by a signed URL that names no sandbox", async () => {
    const sandbox = await ownSandbox({ lifecycle });
    await sandbox.files.write("/home/user/a.txt", "signed");
    const url = await sandbox.downloadUrl("/home/user/a.txt");
    await sandbox.pause();
    expect(await (await fetch(url)).text()).toBe("signed");
    await sandbox.pause();
    expect(await sandbox.files.read("/home/user/a.txt")).toBe("signed");
  });

  test("after it was paused at its timeout, again and again", async () => {
    const sandbox = await ownSandbox({ lifecycle });
    await startFileServer(sandbox, PORT, "awake");
    for (let round = 0; round < 2; round++) {
      await sandbox.setTimeout(1);
      await expect.poll(() => stateOf(sandbox), { timeout: 90_000 }).toBe("paused");
      expect((await visit(platform, sandbox, { port: PORT })).text).toBe("awake");
    }
  });
});

describe("a paused sandbox stays paused", () => {
  test("without the policy: isRunning is false and resumes nothing", async () => {
    const sandbox = await ownSandbox({ lifecycle: { onTimeout: "pause" } });
    await sandbox.pause();
    expect(await sandbox.isRunning()).toBe(false);
    const answer = await visit(platform, sandbox, { port: PORT });
    expect(answer.status).toBe(502);
    const message = "The sandbox was not found";
    expect(JSON.parse(answer.text)).toEqual({ sandboxId: sandbox.sandboxId, message, code: 502 });
    expect(await stateOf(sandbox)).toBe("paused");
  });

  test("without memory: no server would run in it", async () => {
    const sandbox = await ownSandbox({ lifecycle });
    await sandbox.pause({ keepMemory: false });
    expect((await visit(platform, sandbox, { port: PORT })).status).toBe(502);
    expect(await stateOf(sandbox)).toBe("paused");
  });

  test("for envd's port without its token", async () => {
    const sandbox = await pausedSandbox();
    expect((await visit(platform, sandbox, { port: 49_983, path: "/health" })).status).toBe(403);
    expect(await stateOf(sandbox)).toBe("paused");
    const { envdAccessToken } = await targetOf(platform, sandbox.sandboxId);
    const headers = { "x-access-token": envdAccessToken };
    expect((await visit(platform, sandbox, { port: 49_983, path: "/health", headers })).status).toBe(204);
  });

  test("for private traffic without the traffic token", async () => {
    const sandbox = await pausedSandbox({ network: { allowPublicTraffic: false } });
    expect((await visit(platform, sandbox, { port: PORT })).status).toBe(403);
    expect(await stateOf(sandbox)).toBe("paused");
    const headers = { "e2b-traffic-access-token": sandbox.trafficAccessToken ?? "" };
    expect((await visit(platform, sandbox, { port: PORT, headers })).text).toBe("awake");
  });

  test("and is not found once it was killed", async () => {
    const sandbox = await pausedSandbox();
    await sandbox.kill();
    expect((await visit(platform, sandbox, { port: PORT })).status).toBe(502);
  });
});
