/** The end of a sandbox and what is left of it: its reason, its history, and the answers to who still asks for it. */

import { NotFoundError, Sandbox } from "e2b";
import { describe, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { visit } from "../../support/sandbox/pausing.ts";
import { targetOf } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const PORT = 8000;

interface Ended {
  readonly state: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly endReason: string;
  readonly exitCode?: number;
}

async function history({ sandboxId }: Sandbox): Promise<Ended> {
  const reply = await api(platform, "GET", `/sandboxes/${sandboxId}?ended=true`);
  expect(reply.status, reply.text).toBe(200);
  return reply.json as Ended;
}

const isGone = ({ sandboxId }: Sandbox) =>
  expect
    .poll(async () => (await api(platform, "GET", `/sandboxes/${sandboxId}`)).status, { timeout: 60_000 })
    .toBe(404);

describe("the reason of an end", () => {
  test("is the request for a sandbox that was killed, and its history stays readable", async () => {
    const sandbox = await ownSandbox({ metadata: { purpose: "ended" } });
    await sandbox.commands.run("echo last words; curl -sm 1 http://192.0.2.1 || true");
    expect(await sandbox.kill()).toBe(true);
    const { state, startedAt, endedAt, endReason, exitCode } = await history(sandbox);
    expect({ state, endReason, exitCode }).toEqual({ state: "ended", endReason: "request", exitCode: undefined });
    expect(Date.parse(endedAt)).toBeGreaterThan(Date.parse(startedAt));
    for (const [path, text] of [
      ["metrics?ended=true", "memUsed"],
      ["network/log?ended=true", "entries"],
      ["logs?ended=true", "logEntries"],
    ]) {
      const reply = await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}/${path}`);
      expect([path, reply.status, reply.text]).toEqual([path, 200, expect.stringContaining(text ?? "")]);
    }
    const listed = (await api(platform, "GET", "/v2/sandboxes?state=ended&metadata=purpose%3Dended")).json;
    expect(listed).toContainEqual(expect.objectContaining({ sandboxID: sandbox.sandboxId, state: "ended" }));
  });

  test("is in the message of each later request, which SDKs take for a sandbox that is not there", async () => {
    const sandbox = await ownSandbox();
    await sandbox.kill();
    const { sandboxId } = sandbox;
    for (const [method, path, body] of [
      ["GET", `/sandboxes/${sandboxId}`],
      ["DELETE", `/sandboxes/${sandboxId}`],
      ["POST", `/sandboxes/${sandboxId}/timeout`, { timeout: 1 }],
      ["POST", `/v2/sandboxes/${sandboxId}/connect`, {}],
      ["POST", `/sandboxes/${sandboxId}/pause`, {}],
      ["POST", `/sandboxes/${sandboxId}/fork`, {}],
    ] as const) {
      const reply = await api(platform, method, path, body === undefined ? {} : { body });
      expect([path, reply.status, reply.text]).toEqual([path, 404, expect.stringContaining("a request killed it")]);
    }
    // Some SDKs put a text of their own in place of the message.
    const asks = [
      () => sandbox.setTimeout(1_000),
      () => sandbox.getInfo(),
      () => Sandbox.connect(sandboxId),
      () => sandbox.pause(),
    ];
    for (const ask of asks) expect(await refusal(ask())).toBeInstanceOf(NotFoundError);
    expect(await sandbox.kill()).toBe(false);
    expect(await sandbox.isRunning()).toBe(false);
  });

  test("is the timeout for a sandbox whose time is over", async () => {
    const sandbox = await ownSandbox();
    await sandbox.setTimeout(0);
    await isGone(sandbox);
    expect((await history(sandbox)).endReason).toBe("timeout");
  });

  test("is an exit, with its code, when a program inside ends the first process", async () => {
    const sandbox = await ownSandbox();
    await sandbox.commands.run("sudo kill -TERM 1", { timeoutMs: 30_000 }).catch(() => undefined);
    await isGone(sandbox);
    expect(await history(sandbox)).toMatchObject({ state: "ended", endReason: "exited", exitCode: 0 });
  });
});

describe("a request to a paused sandbox that traffic does not resume", () => {
  test("is told to holders of a token or key, and to nobody else", async () => {
    const sandbox = await ownSandbox({ network: { allowPublicTraffic: false }, lifecycle: { onTimeout: "pause" } });
    const { envdAccessToken } = await targetOf(platform, sandbox.sandboxId);
    await sandbox.files.write("/home/user/a.txt", "signed");
    const signed = await sandbox.downloadUrl("/home/user/a.txt");
    await sandbox.pause();
    const answer = (message: string) => ({
      status: 502,
      text: JSON.stringify({ sandboxId: sandbox.sandboxId, message, code: 502 }),
    });
    const held = answer("The sandbox is paused: connect to resume it");
    for (const headers of [
      { "x-access-token": envdAccessToken },
      { "e2b-traffic-access-token": sandbox.trafficAccessToken ?? "" },
      { "x-api-key": platform.apiKey },
    ]) {
      expect(await visit(platform, sandbox, { port: PORT, headers })).toEqual(held);
    }
    const unaddressed = await fetch(signed);
    expect({ status: unaddressed.status, text: await unaddressed.text() }).toEqual(held);
    const headers = { "x-access-token": "wrong", "x-api-key": `svc_${"0".repeat(40)}` };
    expect(await visit(platform, sandbox, { port: PORT, headers })).toEqual(answer("The sandbox was not found"));
    expect((await refusal(sandbox.files.list("/"))).message).toContain("The sandbox is paused: connect to resume it");
    expect(await sandbox.isRunning()).toBe(false);
    expect((await Sandbox.getInfo(sandbox.sandboxId)).state).toBe("paused");
  });
});
