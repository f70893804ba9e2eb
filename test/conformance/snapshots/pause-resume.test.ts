/** Pause and connect: processes, terminals, servers, files and environment stay the same, and no time passes for them. */

import { randomBytes } from "node:crypto";
import { Sandbox, SandboxNotFoundError } from "e2b";
import { describe, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { identityOf, pauseFor, startCounter, startFileServer, visit } from "../../support/sandbox/pausing.ts";
import { ownSandbox, refusal, text } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const SLEEP_MS = 3_000;

/** An id that is new for every start of a container, and stays the same when memory is restored. */
const bootOf = async (sandbox: Sandbox) => (await sandbox.commands.run("cat /proc/sys/kernel/random/boot_id")).stdout;

describe("pause and connect", () => {
  test("a counter continues where it was, with the same pid, and did not count while it was paused", async () => {
    const sandbox = await ownSandbox();
    const counter = await startCounter(sandbox);
    const process = await identityOf(sandbox, counter.pid);
    const boot = await bootOf(sandbox);
    const before = { at: Date.now(), count: await counter.read(), process };
    expect(await sandbox.pause()).toBe(true);
    await pauseFor(SLEEP_MS);
    const again = await Sandbox.connect(sandbox.sandboxId);
    const after = await counter.read(again);
    expect(after).toBeGreaterThanOrEqual(before.count);
    // It counts at most ten times a second, before the pause and since the resume.
    const awakeMs = Date.now() - before.at - SLEEP_MS;
    expect(after - before.count).toBeLessThan(awakeMs / 100 + 3);
    expect(await identityOf(again, counter.pid)).toBe(before.process);
    expect(await bootOf(again)).toBe(boot);
    await expect.poll(() => counter.read(again)).toBeGreaterThan(after);
  });

  test("an open terminal keeps its shell, with what was set in it", async () => {
    const sandbox = await ownSandbox();
    let heard = "";
    const onData = (data: Uint8Array) => {
      heard += text(data);
    };
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData, timeoutMs: 0 });
    const ended = terminal.wait().then(
      () => "ended",
      () => "cut",
    );
    const type = (line: string) => sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(line));
    await type("MARK=here; echo set-$MARK\n");
    await expect.poll(() => heard).toContain("set-here\r\n");
    expect(await sandbox.pause()).toBe(true);
    expect(await ended).toBe("cut");
    await sandbox.connect();
    heard = "";
    const taken = await sandbox.pty.connect(terminal.pid, { onData, timeoutMs: 0 });
    await type("echo still-$MARK-$((40+2)); stty size\n");
    await expect.poll(() => heard).toContain("still-here-42\r\n24 80\r\n");
    await taken.kill();
  });

  test("a server serves on, without being started again", async () => {
    const sandbox = await ownSandbox();
    const pid = await startFileServer(sandbox, 8000, "kept");
    const process = await identityOf(sandbox, pid);
    expect(await visit(platform, sandbox, { port: 8000 })).toEqual({ status: 200, text: "kept" });
    await sandbox.pause();
    expect((await visit(platform, sandbox, { port: 8000 })).status).toBe(502);
    await sandbox.connect();
    expect(await visit(platform, sandbox, { port: 8000 })).toEqual({ status: 200, text: "kept" });
    expect(await identityOf(sandbox, pid)).toBe(process);
  });

  test("files, environment, metadata and tokens are the same after a resume", async () => {
    const sandbox = await ownSandbox({ envs: { GREETING: "hello" }, metadata: { purpose: "pause" } });
    const random = randomBytes(20_000).toString("hex");
    await sandbox.files.write("data/random.txt", random);
    await sandbox.commands.run("ln -s random.txt data/link && chmod 600 data/random.txt && echo tmpfs > /dev/shm/mark");
    const [before] = [await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}`)];
    await sandbox.pause();
    const resumed = await api(platform, "POST", `/v2/sandboxes/${sandbox.sandboxId}/connect`, { body: {} });
    expect(resumed.status).toBe(201);
    const token = (reply: { json: unknown }) => (reply.json as { envdAccessToken: string }).envdAccessToken;
    expect(token(resumed)).toBe(token(before));
    expect(await sandbox.files.read("data/link")).toBe(random);
    expect((await sandbox.commands.run("stat -c %a data/random.txt; cat /dev/shm/mark")).stdout).toBe("600\ntmpfs\n");
    expect((await sandbox.commands.run('echo "$GREETING"')).stdout).toBe("hello\n");
    expect((await sandbox.getInfo()).metadata).toEqual({ purpose: "pause" });
  });

  test("the clock is right at once after a resume", async () => {
    const sandbox = await ownSandbox();
    await sandbox.pause();
    await pauseFor(1_500);
    await sandbox.connect();
    const before = Date.now();
    const inside = Number((await sandbox.commands.run("date +%s%3N")).stdout);
    expect(inside).toBeGreaterThan(before - 1_000);
    expect(inside).toBeLessThan(Date.now() + 1_000);
  });

  test("the same processes continue after each of several pauses", async () => {
    const sandbox = await ownSandbox();
    const counter = await startCounter(sandbox);
    const process = await identityOf(sandbox, counter.pid);
    for (let round = 0; round < 4; round++) {
      const before = await counter.read();
      expect(await sandbox.pause()).toBe(true);
      await sandbox.connect();
      expect(await identityOf(sandbox, counter.pid)).toBe(process);
      await expect.poll(() => counter.read()).toBeGreaterThan(before);
    }
  });
});

describe("while it is paused", () => {
  test("a paused sandbox reads paused, is not running, and a second pause says that there was nothing to do", async () => {
    const sandbox = await ownSandbox();
    expect(await sandbox.isRunning()).toBe(true);
    expect(await sandbox.pause()).toBe(true);
    expect(await sandbox.isRunning()).toBe(false);
    expect((await sandbox.getInfo()).state).toBe("paused");
    expect(await sandbox.pause()).toBe(false);
    const second = await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/pause`, { body: {} });
    expect([second.status, (second.json as { code: number }).code]).toEqual([409, 409]);
  });

  test("a paused sandbox is listed among the paused ones only", async () => {
    const sandbox = await ownSandbox({ metadata: { listed: "paused-only" } });
    await sandbox.pause();
    const ids = async (state: "running" | "paused") => {
      const paginator = Sandbox.list({ query: { metadata: { listed: "paused-only" }, state: [state] } });
      return (await paginator.nextItems()).map(({ sandboxId }) => sandboxId);
    };
    expect(await ids("paused")).toContain(sandbox.sandboxId);
    expect(await ids("running")).not.toContain(sandbox.sandboxId);
  });

  test("the time-out of a paused sandbox cannot be set", async () => {
    const sandbox = await ownSandbox();
    await sandbox.pause();
    expect(await refusal(sandbox.setTimeout(60_000))).toBeInstanceOf(SandboxNotFoundError);
  });

  test("a kill of a paused sandbox is for good", async () => {
    const sandbox = await ownSandbox();
    await sandbox.pause();
    expect(await sandbox.kill()).toBe(true);
    expect(await sandbox.kill()).toBe(false);
    expect(await refusal(Sandbox.connect(sandbox.sandboxId))).toBeInstanceOf(SandboxNotFoundError);
    expect(await refusal(Sandbox.getInfo(sandbox.sandboxId))).toBeInstanceOf(SandboxNotFoundError);
  });

  test("a command that was running at the pause gets an error at its client, and continues after the resume", async () => {
    const sandbox = await ownSandbox();
    const command = "until [ -e /tmp/go ]; do sleep 0.1; done; echo done > /tmp/done";
    const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 0 });
    const cut = refusal(handle.wait());
    await sandbox.pause();
    expect(await cut).toBeInstanceOf(Error);
    await sandbox.connect();
    expect(await sandbox.files.exists("/tmp/done")).toBe(false);
    await sandbox.files.write("/tmp/go", "");
    await expect.poll(() => sandbox.files.exists("/tmp/done")).toBe(true);
  });
});

describe("connect", () => {
  test("counts the time from now, and extends only after that", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 900_000 });
    await sandbox.pause();
    await sandbox.connect({ timeoutMs: 300_000 });
    const { endAt } = await sandbox.getInfo();
    expect(endAt.getTime() - Date.now()).toBeGreaterThan(200_000);
    expect(endAt.getTime() - Date.now()).toBeLessThanOrEqual(301_000);
    await sandbox.connect({ timeoutMs: 10_000 });
    expect((await sandbox.getInfo()).endAt).toEqual(endAt);
  });

  test("by several callers at once is one resume", async () => {
    const sandbox = await ownSandbox();
    const counter = await startCounter(sandbox);
    await sandbox.pause();
    const all = await Promise.all(Array.from({ length: 5 }, () => Sandbox.connect(sandbox.sandboxId)));
    const { json } = await api(platform, "GET", `/events/sandboxes/${sandbox.sandboxId}`);
    const types = (json as { type: string }[]).map(({ type }) => type);
    expect(types.filter((type) => type === "sandbox.lifecycle.resumed")).toHaveLength(1);
    const counts = await Promise.all(all.map((each) => counter.read(each)));
    await expect.poll(() => counter.read()).toBeGreaterThan(Math.max(...counts));
  });

  test("with onResume 'reboot' keeps the disk and starts everything else afresh", async () => {
    const sandbox = await ownSandbox({ envs: { GREETING: "hello" } });
    const counter = await startCounter(sandbox);
    await sandbox.files.write("kept.txt", "on disk");
    await sandbox.commands.run("touch /dev/shm/mark && sync");
    const boot = await bootOf(sandbox);
    await sandbox.pause();
    const again = await Sandbox.connect(sandbox.sandboxId, { onResume: "reboot" });
    expect(await again.files.read("kept.txt")).toBe("on disk");
    expect((await again.commands.run('echo "$GREETING $(whoami) $(pwd)"')).stdout).toBe("hello user /home/user\n");
    expect(await bootOf(again)).not.toBe(boot);
    // Files in memory ended with the processes' memory.
    expect(await again.files.exists("/dev/shm/mark")).toBe(false);
    expect((await again.commands.list()).map(({ pid }) => pid)).not.toContain(counter.pid);
  });

  test("to a sandbox that was paused without memory also keeps only the disk", async () => {
    const sandbox = await ownSandbox();
    await startCounter(sandbox);
    await sandbox.files.write("kept.txt", "on disk");
    expect(await sandbox.pause({ keepMemory: false })).toBe(true);
    await sandbox.connect();
    expect(await sandbox.files.read("kept.txt")).toBe("on disk");
    expect(await sandbox.commands.list()).toEqual([]);
  });

  test("the deprecated route to resume works, once", async () => {
    const sandbox = await ownSandbox();
    await sandbox.pause();
    const path = `/sandboxes/${sandbox.sandboxId}/resume`;
    expect((await api(platform, "POST", path, { body: { timeout: 60 } })).status).toBe(201);
    expect((await api(platform, "POST", path, { body: { timeout: 60 } })).status).toBe(409);
    expect((await api(platform, "POST", path, { body: { timeout: 0 } })).status).toBe(400);
  });
});

describe("auto-pause", () => {
  test("pauses a sandbox at its end with everything in it, and getInfo shows that option before and after", async () => {
    const sandbox = await ownSandbox({ lifecycle: { onTimeout: "pause" } });
    const counter = await startCounter(sandbox);
    expect((await sandbox.getInfo()).lifecycle).toEqual({ onTimeout: "pause", autoResume: false });
    await sandbox.setTimeout(1_000);
    await expect.poll(async () => (await sandbox.getInfo()).state, { timeout: 90_000 }).toBe("paused");
    expect((await sandbox.getInfo()).lifecycle).toEqual({ onTimeout: "pause", autoResume: false });
    await sandbox.connect({ timeoutMs: 300_000 });
    const count = await counter.read();
    await expect.poll(() => counter.read()).toBeGreaterThan(count);
  });

  test("keeps only the disk if the options say so", async () => {
    const lifecycle = { onTimeout: { action: "pause", keepMemory: false } } as const;
    const sandbox = await ownSandbox({ lifecycle });
    await sandbox.files.write("kept.txt", "on disk");
    await startCounter(sandbox);
    await sandbox.setTimeout(1_000);
    await expect.poll(async () => (await sandbox.getInfo()).state, { timeout: 90_000 }).toBe("paused");
    await sandbox.connect({ timeoutMs: 300_000 });
    expect(await sandbox.files.read("kept.txt")).toBe("on disk");
    expect(await sandbox.commands.list()).toEqual([]);
  });
});
