/** Processes that outlive the call that started them: background, list, reconnect, stdin, signals, and the raw RPCs. */

import { createHash } from "node:crypto";
import { CommandExitError, NotFoundError, RateLimitError, type Sandbox } from "e2b";
import { describe, expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { frames, stream, targetOf, unary } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox, refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

describe("background commands", () => {
  const sandbox = sharedSandbox();

  test("run returns at once with a pid that is real inside, and wait gives the result", async () => {
    const command = "until [ -e /tmp/late ]; do sleep 0.05; done; echo late";
    const handle = await sandbox().commands.run(command, { background: true });
    expect((await sandbox().commands.run(`kill -0 ${handle.pid} && echo alive`)).stdout).toBe("alive\n");
    expect(handle.exitCode).toBeUndefined();
    await sandbox().files.write("/tmp/late", "");
    expect(await handle.wait()).toMatchObject({ stdout: "late\n", exitCode: 0 });
  });

  test("list shows the running processes and what they were started with", async () => {
    const handle = await started(sandbox(), "sleep 3100", { cwd: "/tmp", envs: { A: "b" } });
    const [entry] = (await sandbox().commands.list()).filter((process) => process.pid === handle.pid);
    expect(entry).toMatchObject({ cmd: "/bin/bash", args: ["-l", "-c", "sleep 3100"], envs: { A: "b" }, cwd: "/tmp" });
    await handle.kill();
    await expect
      .poll(async () => (await sandbox().commands.list()).map((process) => process.pid))
      .not.toContain(handle.pid);
  });

  test("kill returns true once; the process is gone and reaped", async () => {
    const handle = await started(sandbox(), "sleep 600");
    expect(await sandbox().commands.kill(handle.pid)).toBe(true);
    const error = await refusal(handle.wait());
    expect(error).toBeInstanceOf(CommandExitError);
    expect(error).toMatchObject({ exitCode: -1, error: "signal: killed" });
    expect((await sandbox().commands.run(`kill -0 ${handle.pid} 2>/dev/null || echo gone`)).stdout).toBe("gone\n");
    expect(await sandbox().commands.kill(handle.pid)).toBe(false);
    expect(await sandbox().commands.kill(999_999)).toBe(false);
  });

  test("a process outlives its client, and another client can connect to it", async () => {
    const first: string[] = [];
    const command = "echo tick1; until [ -e /tmp/heard ]; do sleep 0.05; done; echo tick8; echo end";
    const handle = await sandbox().commands.run(command, {
      background: true,
      onStdout: (data) => void first.push(data),
    });
    await expect.poll(() => first.join("")).toContain("tick1\n");
    await handle.disconnect();
    const heard: string[] = [];
    const again = await sandbox().commands.connect(handle.pid, { onStdout: (data) => void heard.push(data) });
    await sandbox().files.write("/tmp/heard", "");
    const result = await again.wait();
    expect(result.exitCode).toBe(0);
    expect(heard.join("")).toContain("tick8\nend\n");
    // The client hears only new output: connect does not replay the old one.
    expect(heard.join("").match(/tick1\n/g) ?? []).toHaveLength(0);
  });

  test("two clients get the output of the same process", async () => {
    const handle = await sandbox().commands.run("read x; echo heard $x", { background: true, stdin: true });
    const other = await sandbox().commands.connect(handle.pid);
    await sandbox().commands.sendStdin(handle.pid, "you\n");
    const [first, second] = await Promise.all([handle.wait(), other.wait()]);
    expect([first.stdout, second.stdout]).toEqual(["heard you\n", "heard you\n"]);
  });

  test("connecting to a pid that never was is refused", async () => {
    expect(await refusal(sandbox().commands.connect(999_999))).toBeInstanceOf(NotFoundError);
  });

  test("a process that ended a moment ago still reports its exit", async () => {
    const handle = await sandbox().commands.run("exit 3", { background: true });
    expect(await refusal(handle.wait())).toMatchObject({ exitCode: 3 });
    const again = await sandbox().commands.connect(handle.pid);
    expect(await refusal(again.wait())).toMatchObject({ exitCode: 3 });
  });
});

describe("stdin", () => {
  const sandbox = sharedSandbox();

  test("text goes into a process, also in pieces and empty ones", async () => {
    const handle = await sandbox().commands.run("head -n 2", { background: true, stdin: true });
    await handle.sendStdin("");
    await handle.sendStdin("first\nsec");
    await handle.sendStdin("ond ü\n");
    expect((await handle.wait()).stdout).toBe("first\nsecond ü\n");
  });

  test("closing stdin is the end of file for the process, and closing twice is harmless", async () => {
    const handle = await sandbox().commands.run("cat; echo eof", { background: true, stdin: true });
    await handle.sendStdin(Buffer.from([104, 105, 10]));
    await handle.closeStdin();
    await sandbox()
      .commands.closeStdin(handle.pid)
      .catch((error: unknown) => {
        // The process may have ended already; any other error is wrong.
        expect(error).toBeInstanceOf(NotFoundError);
      });
    expect((await handle.wait()).stdout).toBe("hi\neof\n");
  });

  test("four megabytes of input arrive unchanged", async () => {
    const handle = await sandbox().commands.run("sha256sum", { background: true, stdin: true });
    const piece = "0123456789abcdef".repeat(16_384);
    for (let index = 0; index < 16; index++) await handle.sendStdin(piece);
    await handle.closeStdin();
    expect((await handle.wait()).stdout.slice(0, 64)).toBe(createHash("sha256").update(piece.repeat(16)).digest("hex"));
  });

  test("stdin of a process that is gone is not found", async () => {
    expect(await refusal(sandbox().commands.sendStdin(999_999, "x"))).toBeInstanceOf(NotFoundError);
  });
});

describe("the process RPCs, as any Connect client sends them", () => {
  const sandbox = sharedSandbox();
  const shell = (script: string) => ({ process: { cmd: "/bin/bash", args: ["-c", script] }, stdin: false });

  test("the stream of a run is start, data and end, with zero values left out", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const all = await frames(stream(platform, target, "process.Process/Start", { message: shell("echo hi") }));
    const events = all
      .filter((one) => !one.end)
      .map((one) => one.value.event as Record<string, Record<string, unknown>>);
    expect(events[0]?.start?.pid).toBeTypeOf("number");
    expect(events[1]).toEqual({ data: { stdout: Buffer.from("hi\n").toString("base64") } });
    expect(events.at(-1)).toEqual({ end: { exited: true, status: "exit status 0" } });
    expect(all.at(-1)).toEqual({ end: true, value: {} });
  });

  test("a failed run has the code and the error", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const all = await frames(stream(platform, target, "process.Process/Start", { message: shell("exit 3") }));
    expect(all.at(-2)?.value).toEqual({
      event: { end: { exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" } },
    });
  });

  test("an idle stream is kept alive at the interval that was asked for", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const headers = { "keepalive-ping-interval": "1" };
    const message = shell("until [ -e /tmp/kept-alive ]; do sleep 0.1; done");
    let kept = 0;
    for await (const one of stream(platform, target, "process.Process/Start", { message, headers })) {
      if (JSON.stringify(one.value).includes("keepalive")) kept += 1;
      if (kept === 2) await sandbox().files.write("/tmp/kept-alive", "");
    }
    expect(kept).toBeGreaterThanOrEqual(2);
  });

  test("the deadline of the call ends it and kills the process", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const headers = { "connect-timeout-ms": "700" };
    const all = await frames(
      stream(platform, target, "process.Process/Start", { message: shell("sleep 77"), headers }),
    );
    expect(all.at(-1)?.value).toMatchObject({ error: { code: "deadline_exceeded" } });
    await expect.poll(async () => (await sandbox().commands.run("pgrep -fc '^sleep 77$' || true")).stdout).toBe("0\n");
  });

  test("a tag selects a process; other signals than kill and term are unimplemented", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const message = { ...shell("trap 'exit 7' TERM; while :; do sleep 0.05; done"), tag: "mine" };
    const running = frames(stream(platform, target, "process.Process/Start", { message }));
    await expect
      .poll(async () => (await unary(platform, target, "process.Process/List", { message: {} })).text)
      .toContain('"tag":"mine"');
    const process = { tag: "mine" };
    const odd = await unary(platform, target, "process.Process/SendSignal", { message: { process, signal: 2 } });
    expect(odd.status).toBe(501);
    const term = await unary(platform, target, "process.Process/SendSignal", {
      message: { process, signal: "SIGNAL_SIGTERM" },
    });
    expect([term.status, term.text]).toEqual([200, "{}"]);
    expect((await running).at(-2)?.value).toMatchObject({ event: { end: { exitCode: 7 } } });
  });

  test("input of the wrong kind, without content, and for no process is refused", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const handle = await started(sandbox(), "cat", { stdin: true });
    const process = { pid: handle.pid };
    const call = (message: unknown) => unary(platform, target, "process.Process/SendInput", { message });
    expect((await call({ process, input: { stdin: "" } })).status).toBe(200);
    expect((await call({ process, input: { pty: "eA==" } })).json).toMatchObject({ code: "internal" });
    expect((await call({ process })).json).toMatchObject({ code: "unimplemented" });
    expect((await call({ process: { pid: 999_999 }, input: { stdin: "eA==" } })).json).toMatchObject({
      code: "not_found",
    });
    await handle.kill();
  });

  test("a unary call with a deadline, as the other SDK sends it, is answered", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const headers = { "connect-timeout-ms": "60000" };
    const stat = await unary(platform, target, "filesystem.Filesystem/Stat", { message: { path: "/etc" }, headers });
    expect(stat.json).toMatchObject({ entry: { name: "etc", type: "FILE_TYPE_DIRECTORY", path: "/etc" } });
    expect((stat.json as { entry: { size: unknown } }).entry.size).toBeTypeOf("string");
  });

  test("a missing and a wrong token are refused before anything runs", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    for (const token of [null, "wrong"]) {
      const reply = await unary(platform, target, "process.Process/List", { message: {}, token });
      expect(reply.status).toBe(401);
      expect(reply.headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(reply.json).toEqual({
        code: 401,
        message: "unauthorized access, please provide a valid access token or method signing if supported",
      });
    }
  });

  test("malformed messages are refused, and other calls are not affected", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const bad = await unary(platform, target, "process.Process/SendSignal", { message: { process: "x" } });
    expect(bad.json).toMatchObject({ code: "invalid_argument" });
    const unknown = await unary(platform, target, "process.Process/NoSuchMethod", { message: {} });
    expect(unknown.status).toBe(404);
    expect((await sandbox().commands.run("echo fine")).stdout).toBe("fine\n");
  });
});

describe("a sandbox at its limits", () => {
  test("a start beyond the limit of processes is an error that may be retried, and the sandbox recovers", async () => {
    const sandbox = await ownSandbox();
    // All children stay until their parent ends, however long that takes: the parent holds the pipe open.
    const bomb = [
      "import os, time",
      "reading, writing = os.pipe()",
      "try:",
      "  while True:",
      "    if os.fork() == 0:",
      "      os.close(writing); os.read(reading, 1); os._exit(0)",
      "except OSError: pass",
      "print('full', flush=True)",
      "while not os.path.exists('/tmp/enough'): time.sleep(0.1)",
    ].join("\n");
    await sandbox.files.write("/tmp/bomb.py", bomb);
    let heard = "";
    const handle = await sandbox.commands.run("exec python3 /tmp/bomb.py", {
      background: true,
      timeoutMs: 300_000,
      onStdout: (data) => {
        heard += data;
      },
    });
    await expect.poll(() => heard, { timeout: 120_000 }).toContain("full");
    const error = await refusal(sandbox.commands.run("true"));
    expect(error).toBeInstanceOf(RateLimitError);
    await sandbox.files.write("/tmp/enough", "");
    await handle.wait().catch(() => undefined);
    await expect
      .poll(
        () =>
          sandbox.commands.run("echo back").then(
            (result) => result.stdout,
            (reason: Error) => reason.name,
          ),
        {
          timeout: 120_000,
          interval: 500,
        },
      )
      .toBe("back\n");
  }, 400_000);

  test("a command that eats all memory dies alone", async () => {
    const sandbox = await ownSandbox();
    const info = await sandbox.getInfo();
    await sandbox.files.write("/tmp/mark", "kept");
    const error = await refusal(
      sandbox.commands.run(`exec python3 -c 'b = []\nwhile True: b.append(bytearray(16 << 20))'`, {
        timeoutMs: 180_000,
      }),
    );
    const told = `signal: killed (out of memory: limit ${info.memoryMB} MiB)`;
    expect(error).toMatchObject({ name: "CommandExitError", exitCode: -1, error: told, message: told });
    expect(await sandbox.files.read("/tmp/mark")).toBe("kept");
    expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
  }, 400_000);
});

interface Options {
  readonly stdin?: boolean;
  readonly cwd?: string;
  readonly envs?: Record<string, string>;
}

async function started(sandbox: Sandbox, command: string, options: Options = {}) {
  const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 300_000, ...options });
  // A caller that kills the process waits for its end separately.
  handle.wait().catch(() => undefined);
  return handle;
}
