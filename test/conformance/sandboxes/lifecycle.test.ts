/** A sandbox from create to its end: reads, connects, extensions of its time, expiry and kill. */

import { Sandbox, SandboxNotFoundError, TimeoutError } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { extendedInTime, ownSandbox, refusal, sharedSandbox, whereabouts } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

describe("create", () => {
  const sandbox = sharedSandbox({ metadata: { purpose: "create" }, envs: { GREETING: "hello" } });

  test("a sandbox made with no options runs a command at once", async () => {
    const fresh = await ownSandbox();
    expect((await fresh.commands.run("echo ok")).stdout).toBe("ok\n");
  });

  test("ids, versions and tokens have the shape that clients rely on", async () => {
    const reply = await api(platform, "POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 300 } });
    expect(reply.status).toBe(201);
    const created = reply.json as Record<string, unknown>;
    expect(created.sandboxID).toMatch(/^i[a-z0-9]{19}$/);
    expect(created.templateID).toMatch(/^[a-z0-9]+$/);
    expect(created.clientID).toMatch(/.+/);
    expect(created.envdVersion).toMatch(/^0\.\d+\.\d+$/);
    expect(created.envdAccessToken).toMatch(/^\S{16,}$/);
    expect(created.trafficAccessToken ?? null).toBeNull();
    expect(created).not.toHaveProperty("alias", "");
    expect((await api(platform, "DELETE", `/sandboxes/${String(created.sandboxID)}`)).status).toBe(204);
  });

  test("the environment of a create reaches every process", async () => {
    expect((await sandbox().commands.run('echo "$GREETING"')).stdout).toBe("hello\n");
  });

  test("processes know which sandbox they are in", async () => {
    const { stdout } = await sandbox().commands.run('echo "$E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID"');
    const info = await sandbox().getInfo();
    expect(stdout.trim()).toBe(`true ${sandbox().sandboxId} ${info.templateId}`);
  });

  test("unknown and retired properties of a create are ignored", async () => {
    const body = { templateID: "base", timeout: 300, secure: false, somethingNew: { a: 1 } };
    const reply = await api(platform, "POST", "/v2/sandboxes", { body });
    expect(reply.status).toBe(201);
    const id = (reply.json as { sandboxID: string }).sandboxID;
    // `secure: false` must not switch the token off.
    const detail = (await api(platform, "GET", `/sandboxes/${id}`)).json as { envdAccessToken?: string };
    expect(detail.envdAccessToken).toMatch(/^\S{16,}$/);
    await api(platform, "DELETE", `/sandboxes/${id}`);
  });

  test("an unknown template is a 404 that names it", async () => {
    const error = await refusal(Sandbox.create("no-such-template"));
    expect(error).toHaveProperty("statusCode", 404);
    expect(error.message).toContain("no-such-template");
  });

  test("an unknown tag of a known template is a 404 that names it", async () => {
    const error = await refusal(Sandbox.create("base:no-such-tag"));
    expect(error).toHaveProperty("statusCode", 404);
    expect(error.message).toContain("no-such-tag");
  });

  test("a create may name the template by id, with the default tag and in any case", async () => {
    const { templateId } = await sandbox().getInfo();
    for (const name of [templateId, `${templateId}:default`, "base:default", " BASE "]) {
      const made = await ownSandbox({ template: name });
      expect((await made.getInfo()).templateId).toBe(templateId);
    }
  });
});

describe("reading one sandbox", () => {
  const sandbox = sharedSandbox({ metadata: { "k y": "v&=1", ü: "ö" }, timeoutMs: 600_000 });

  test("getInfo shows the options of its create call", async () => {
    const info = await sandbox().getInfo();
    expect(info.sandboxId).toBe(sandbox().sandboxId);
    expect(info.metadata).toEqual({ "k y": "v&=1", ü: "ö" });
    expect(info.state).toBe("running");
    expect(info.name).toBe("base");
    expect(info.envdVersion).toBe("0.6.13");
    expect(info.cpuCount).toBeGreaterThanOrEqual(1);
    expect(info.memoryMB).toBeGreaterThanOrEqual(128);
    expect(info.allowInternetAccess).toBeUndefined();
    expect(info.lifecycle).toEqual({ onTimeout: "kill", autoResume: false });
    expect(info.endAt.getTime() - info.startedAt.getTime()).toBeGreaterThanOrEqual(599_000);
    expect(info.endAt.getTime() - info.startedAt.getTime()).toBeLessThanOrEqual(605_000);
  });

  test("the end of a sandbox is the same on every read", async () => {
    const first = await sandbox().getInfo();
    const second = await sandbox().getInfo();
    expect(second.endAt).toEqual(first.endAt);
    expect(second.startedAt).toEqual(first.startedAt);
  });

  test("every required field of a sandbox is on the wire, as strict clients want it", async () => {
    const reply = await api(platform, "GET", `/sandboxes/${sandbox().sandboxId}`);
    const detail = reply.json as Record<string, unknown>;
    for (const field of ["templateID", "sandboxID", "clientID", "startedAt", "endAt", "state", "envdVersion"]) {
      expect(detail[field], field).toBeTypeOf("string");
    }
    for (const field of ["cpuCount", "memoryMB", "diskSizeMB"]) expect(detail[field], field).toBeTypeOf("number");
    expect(detail.startedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  });

  test("the sandbox has the processors and the memory that getInfo shows", async () => {
    const info = await sandbox().getInfo();
    await expect.poll(() => sandbox().getMetrics(), { timeout: 90_000, interval: 500 }).not.toHaveLength(0);
    const [metrics] = await sandbox().getMetrics();
    expect(metrics?.cpuCount).toBe(info.cpuCount);
    expect(metrics?.memTotal).toBe(info.memoryMB * 1024 * 1024);
  });

  test("a sandbox with an unknown id is not found, also with a client part behind it", async () => {
    const unknown = `i${"0".repeat(19)}`;
    expect(await refusal(Sandbox.getInfo(unknown))).toBeInstanceOf(SandboxNotFoundError);
    const composite = await api(platform, "GET", `/sandboxes/${sandbox().sandboxId}-6532622b`);
    expect(composite.status).toBe(200);
  });
});

describe("connect and time-outs", () => {
  test("connect returns a handle to the running sandbox and runs commands in it", async () => {
    const sandbox = await ownSandbox();
    await sandbox.files.write("/tmp/mark", "here");
    const again = await Sandbox.connect(sandbox.sandboxId);
    expect(await again.files.read("/tmp/mark")).toBe("here");
  });

  test("connect never shortens the end, not by a millisecond", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    const before = await sandbox.getInfo();
    await sandbox.connect({ timeoutMs: 10_000 });
    await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1000 });
    expect((await sandbox.getInfo()).endAt).toEqual(before.endAt);
  });

  test("connect extends the end", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 60_000 });
    await sandbox.connect({ timeoutMs: 900_000 });
    const left = (await sandbox.getInfo()).endAt.getTime() - Date.now();
    expect(left).toBeGreaterThan(600_000);
    expect(left).toBeLessThanOrEqual(901_000);
  });

  test("connect to a running sandbox answers 200, with an empty body and with none", async () => {
    const sandbox = await ownSandbox();
    const path = `/v2/sandboxes/${sandbox.sandboxId}/connect`;
    expect((await api(platform, "POST", path, { body: {} })).status).toBe(200);
    expect((await api(platform, "POST", path)).status).toBe(200);
    expect((await api(platform, "POST", path, { body: { memory: false } })).status).toBe(200);
  });

  test("setTimeout extends and shortens the life of a sandbox", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 120_000 });
    await sandbox.setTimeout(500_000);
    expect((await sandbox.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(300_000);
    await sandbox.setTimeout(60_000);
    expect((await sandbox.getInfo()).endAt.getTime() - Date.now()).toBeLessThanOrEqual(60_500);
  });

  test("refreshes only ever extend the life of a sandbox", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 60_000 });
    const before = await sandbox.getInfo();
    const path = `/sandboxes/${sandbox.sandboxId}/refreshes`;
    expect((await api(platform, "POST", path, { body: { duration: 20 } })).status).toBe(204);
    expect((await sandbox.getInfo()).endAt).toEqual(before.endAt);
    expect((await api(platform, "POST", path, { body: { duration: 600 } })).status).toBe(204);
    expect((await sandbox.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(300_000);
  });

  test("a sandbox is gone a moment after its end", async () => {
    const asked = Date.now();
    const sandbox = await ownSandbox({ timeoutMs: 1000 });
    const made = Date.now();
    await expect.poll(() => sandbox.isRunning()).toBe(false);
    expect(Date.now() - asked).toBeGreaterThan(900);
    console.log(`a sandbox with a time-out of one second was gone ${Date.now() - made} ms after its create`);
    await expect.poll(() => whereabouts(sandbox)).toBe("SandboxNotFoundError");
    expect(await refusal(sandbox.commands.run("true"))).toBeInstanceOf(Error);
  });

  test("a time-out of zero ends the sandbox at once", async () => {
    const sandbox = await ownSandbox();
    await sandbox.setTimeout(0);
    await expect.poll(() => sandbox.isRunning()).toBe(false);
  });

  test("a sandbox whose time-out is extended in time outlives its first end", async () => {
    const { sandbox, firstEnd } = await extendedInTime();
    await expect.poll(() => Date.now(), { timeout: 90_000, interval: 100 }).toBeGreaterThan(firstEnd.getTime() + 1000);
    expect(await sandbox.isRunning()).toBe(true);
  });
});

describe("kill", () => {
  test("kill returns true once and false from then on, and nothing answers any more", async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
    expect(await sandbox.isRunning()).toBe(true);
    expect(await sandbox.kill()).toBe(true);
    expect(await sandbox.isRunning()).toBe(false);
    expect(await sandbox.kill()).toBe(false);
    expect(await Sandbox.kill(sandbox.sandboxId)).toBe(false);
    expect(await refusal(Sandbox.connect(sandbox.sandboxId))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(sandbox.setTimeout(1000))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(sandbox.commands.run("true"))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(sandbox.files.read("/etc/hostname"))).toBeInstanceOf(TimeoutError);
  });

  test("a command in flight ends with a time-out error that names the reason", async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
    const running = await sandbox.commands.run("sleep 60", { background: true });
    const waiting = refusal(running.wait());
    await sandbox.kill();
    const error = await waiting;
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.message).toContain("The sandbox was killed or reached its end of life");
  });

  test("a command in flight when the sandbox expires ends the same way", async () => {
    const sandbox = await ownSandbox();
    const running = await sandbox.commands.run("sleep 300", { background: true, timeoutMs: 0 });
    const waiting = refusal(running.wait());
    await sandbox.setTimeout(1000);
    const error = await waiting;
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.message).toContain("The sandbox was killed or reached its end of life");
  });

  test("a watch in flight ends with an error", async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
    const ends: (Error | undefined)[] = [];
    await sandbox.files.watchDir("/tmp", () => undefined, { onExit: (error) => void ends.push(error) });
    await sandbox.kill();
    await expect.poll(() => ends).toEqual([expect.any(TimeoutError)]);
  });

  test("many callers kill at once: at least one gets true, and the sandbox is gone for all", async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
    const answers = await Promise.all(Array.from({ length: 5 }, () => Sandbox.kill(sandbox.sandboxId)));
    expect(answers.filter(Boolean).length).toBeGreaterThanOrEqual(1);
    expect(await sandbox.isRunning()).toBe(false);
  });
});

describe("what a sandbox reports about itself", () => {
  const sandbox = sharedSandbox();

  test("metrics are plausible and appear soon", async () => {
    await expect.poll(() => sandbox().getMetrics(), { timeout: 90_000, interval: 500 }).not.toHaveLength(0);
    const [sample] = await sandbox().getMetrics();
    expect(sample?.timestamp.getTime()).toBeGreaterThan(Date.now() - 600_000);
    expect(sample?.cpuUsedPct).toBeGreaterThanOrEqual(0);
    expect(sample?.memUsed).toBeGreaterThan(0);
    expect(sample?.memUsed).toBeLessThan(sample?.memTotal ?? 0);
    expect(sample?.memCache).toBeGreaterThanOrEqual(0);
    expect(sample?.diskUsed).toBeGreaterThanOrEqual(0);
    expect(sample?.diskTotal).toBeGreaterThan(0);
  });

  test("metrics from before a sandbox's start are an empty list", async () => {
    const end = new Date(Date.now() - 3_600_000);
    expect(await sandbox().getMetrics({ start: new Date(end.getTime() - 60_000), end })).toEqual([]);
  });

  test("a busy processor shows in the metrics", async () => {
    const busy = await sandbox().commands.run("while :; do :; done", { background: true, timeoutMs: 0 });
    onTestFinished(async () => {
      busy.wait().catch(() => undefined);
      await busy.kill();
    });
    await expect
      .poll(async () => Math.max(0, ...(await sandbox().getMetrics()).map((sample) => sample.cpuUsedPct)), {
        timeout: 90_000,
        interval: 500,
      })
      .toBeGreaterThan(5);
  });

  test("metrics of several sandboxes at once leave out the unknown ones", async () => {
    await expect.poll(() => sandbox().getMetrics(), { timeout: 90_000, interval: 500 }).not.toHaveLength(0);
    const ids = `${sandbox().sandboxId},i${"0".repeat(19)}`;
    const reply = await api(platform, "GET", `/sandboxes/metrics?sandbox_ids=${ids}`);
    const { sandboxes } = reply.json as { sandboxes: Record<string, Record<string, unknown>> };
    expect(Object.keys(sandboxes)).toEqual([sandbox().sandboxId]);
    const fields = ["cpuCount", "cpuUsedPct", "diskTotal", "diskUsed", "memCache", "memTotal", "memUsed"];
    expect(Object.keys(sandboxes[sandbox().sandboxId] ?? {}).toSorted()).toEqual([
      ...fields,
      "timestamp",
      "timestampUnix",
    ]);
  });

  test("logs of a killed sandbox can still be read", async () => {
    const short = await ownSandbox();
    const path = `/v2/sandboxes/${short.sandboxId}/logs`;
    await short.commands.run("echo last words");
    await expect
      .poll(async () => JSON.stringify((await api(platform, "GET", path)).json), { timeout: 90_000 })
      .toContain("last words");
    await short.kill();
    const reply = await api(platform, "GET", path);
    expect([reply.status, JSON.stringify(reply.json)]).toEqual([200, expect.stringContaining("last words")]);
  });

  test("logs are JSON lines with a level, oldest first, in both versions", async () => {
    await sandbox().commands.run("echo a line for the log");
    const path = `/sandboxes/${sandbox().sandboxId}/logs`;
    await expect
      .poll(async () => ((await api(platform, "GET", path)).json as { logs: unknown[] }).logs.length, {
        timeout: 90_000,
      })
      .toBeGreaterThan(0);
    const { logs, logEntries } = (await api(platform, "GET", path)).json as {
      logs: { timestamp: string; line: string }[];
      logEntries: { timestamp: string; level: string; message: string }[];
    };
    for (const { line } of logs) {
      expect(["debug", "info", "warn", "error"]).toContain((JSON.parse(line) as { level: string }).level);
    }
    expect(logEntries).toHaveLength(logs.length);
    expect(logEntries.map((entry) => entry.timestamp)).toEqual(logEntries.map((entry) => entry.timestamp).toSorted());
    const newest = await api(platform, "GET", `/v2${path}?limit=1&direction=backward`);
    expect((newest.json as { logs: unknown[] }).logs).toHaveLength(1);
    const none = await api(platform, "GET", `/v2${path}?search=no-such-text`);
    expect((none.json as { logs: unknown[] }).logs).toEqual([]);
  });
});
