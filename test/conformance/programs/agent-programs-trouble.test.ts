/**
 * What goes wrong when agents run programs, and what they do about it: crashes, no memory, no disk, hung commands, signals, trees
 * of processes. After each of these the sandbox must be usable. agent-programs.test.ts has the programs that go well.
 */

import { type CommandExitError, type Sandbox, TimeoutError } from "e2b";
import { describe, type ExpectStatic, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { refusal, sharedSandbox, text } from "../../support/sandbox/sdk.ts";

openPlatform();
const sandbox = sharedSandbox();
// What uses up memory or disk harms only itself.
const withoutMemory = sharedSandbox();
const withoutDisk = sharedSandbox();

async function output(script: string, from = sandbox()): Promise<string> {
  return (await from.commands.run(script, { timeoutMs: 180_000 })).stdout.trim();
}

/** How a command failed. */
async function failure(script: string, from = sandbox()): Promise<CommandExitError> {
  return (await refusal(from.commands.run(script, { timeoutMs: 180_000 }))) as CommandExitError;
}

/** A program of which memory ran out was killed with SIGKILL, which its shell reports as 137, and the reason is in the error. */
function expectOutOfMemory(error: CommandExitError, expect: ExpectStatic): void {
  expect(error.exitCode).toBe(137);
  expect(error.error).toMatch(/out of memory: limit \d+ MiB/);
}

describe.concurrent("programs that end badly", () => {
  test("a crash is exit 139 with the shell's message, and the next command runs", async ({ expect }) => {
    await sandbox().files.write("crash.c", "#include <stddef.h>\nint main(void) { *(volatile int *)NULL = 1; }\n");
    const error = await failure("gcc crash.c -o crash && ./crash; code=$?; echo after; exit $code");
    expect(error).toMatchObject({ exitCode: 139, stdout: "after\n" });
    expect(error.stderr).toContain("Segmentation fault");
    expect(await output("ls core* 2>/dev/null; echo well")).toBe("well");
  });

  test("a failed program's traceback arrives on stderr, apart from its output", async ({ expect }) => {
    const error = await failure(`python3 -c 'print("so far"); [][1]'`);
    expect(error).toMatchObject({ exitCode: 1, stdout: "so far\n" });
    expect(error.stderr).toMatch(/^Traceback[^]*IndexError: list index out of range\n$/);
  });

  test("a program that takes all memory is killed, and the rest of the sandbox goes on", async ({ expect }) => {
    const own = withoutMemory();
    await own.files.write("kept.txt", "kept");
    const other = await own.commands.run("exec sleep 300", { background: true, timeoutMs: 0 });
    const greedy = `python3 -c 'held = []\nwhile True: held.append(b"x" * 2**24)'`;
    expectOutOfMemory(await failure(`${greedy}; code=$?; echo after; exit $code`, own), expect);
    expect(
      await output(`cat kept.txt; kill -0 ${other.pid} && echo ' alive'; python3 -c 'print(len(b"x" * 2**24))'`, own),
    ).toBe("kept alive\n16777216");
  });

  test("a full disk is ENOSPC for programs and an error for the SDK, until files are deleted", async ({ expect }) => {
    const own = withoutDisk();
    expect((await failure("cat /dev/zero > large", own)).stderr).toContain("No space left on device");
    const writer = `python3 -c 'with open("rest", "wb") as rest: rest.write(b"x" * 1000000)'`;
    expect((await failure(writer, own)).stderr).toContain("OSError: [Errno 28] No space left on device");
    expect((await refusal(own.files.write("more", "x".repeat(1_000_000)))).message).toMatch(/disk|space/i);
    await output("rm large rest", own);
    await own.files.write("more", "x".repeat(1_000_000));
    expect(await output("stat -c %s more", own)).toBe("1000000");
  });
});

describe.concurrent("programs that do not end", () => {
  test("a hung command ends at its timeout with its processes, and the next command runs", async ({ expect }) => {
    const hung = sandbox().commands.run("echo begun; tail -f /dev/null", { timeoutMs: 1_500 });
    expect(await refusal(hung)).toBeInstanceOf(TimeoutError);
    await expect.poll(() => running(sandbox(), "tail -f /dev/null")).toBe("0");
  });

  test("a loop in the background does its work at each tick until it is killed", async ({ expect }) => {
    const loop = "while true; do date +%s.%N >> ticks; sleep 0.2; done";
    const { pid } = await sandbox().commands.run(loop, { background: true, timeoutMs: 0 });
    const ticks = async () => Number(await output("wc -l < ticks"));
    await expect.poll(ticks).toBeGreaterThan(4);
    expect(await sandbox().commands.kill(pid)).toBe(true);
    // A `date` that it had just started may still write.
    await expect.poll(() => output("before=$(wc -l < ticks); sleep 1; echo $(($(wc -l < ticks) - before))")).toBe("0");
  });

  test("a program that handles SIGTERM ends in its own way, and one that ignores it is killed", async ({ expect }) => {
    const polite = `
import signal, sys
def end(*_):
    print("cleaned up", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True: signal.pause()
`;
    await sandbox().files.write("polite.py", polite);
    const heard: string[] = [];
    const started = await sandbox().commands.run("exec python3 polite.py", {
      background: true,
      onStdout: (data) => void heard.push(data),
    });
    await expect.poll(() => heard.join("")).toBe("ready\n");
    await output(`kill -TERM ${started.pid}`);
    expect(await refusal(started.wait())).toMatchObject({ exitCode: 3, stdout: "ready\ncleaned up\n" });

    const said: string[] = [];
    const deaf = await sandbox().commands.run("trap '' TERM; echo ready; while true; do sleep 0.1; done", {
      background: true,
      onStdout: (data) => void said.push(data),
    });
    await expect.poll(() => said.join("")).toBe("ready\n");
    await output(`kill -TERM ${deaf.pid}; sleep 0.3; kill -0 ${deaf.pid}`);
    expect(await deaf.kill()).toBe(true);
    expect(await refusal(deaf.wait())).toMatchObject({ exitCode: -1, error: "signal: killed" });
  });

  test("a tree of processes ends with one signal to its group", async ({ expect }) => {
    const tree = `setsid bash -c 'sleep 4001 & bash -c "sleep 4002 & sleep 4003" & echo $$ > group; wait'`;
    await sandbox().commands.run(tree, { background: true, timeoutMs: 0 });
    await expect.poll(() => running(sandbox(), "sleep 400[123]")).toBe("3");
    await output("kill -KILL -- -$(cat group)");
    await expect.poll(() => running(sandbox(), "sleep 400[123]")).toBe("0");
  });

  test("timeout of coreutils ends a program that runs for too long", async ({ expect }) => {
    expect(await failure("timeout 0.5 python3 -c 'while True: pass'")).toMatchObject({ exitCode: 124 });
  });
});

describe.concurrent("programs with much to say", () => {
  test("a log of 200000 lines arrives whole and in order, piece by piece", async ({ expect }) => {
    let pieces = 0;
    const { stdout } = await sandbox().commands.run("python3 -c 'for n in range(200000): print(\"line\", n)'", {
      onStdout: () => void (pieces += 1),
    });
    expect(stdout).toBe(Array.from({ length: 200_000 }, (_, index) => `line ${index}\n`).join(""));
    expect(pieces).toBeGreaterThan(1);
  });

  test("a Python session in a terminal answers line by line and keeps its state", async ({ expect }) => {
    let heard = "";
    const { pid } = await sandbox().pty.create({ cols: 100, rows: 30, onData: (data) => void (heard += text(data)) });
    const type = (keys: string) => sandbox().pty.sendInput(pid, Buffer.from(keys));
    await type("python3 -q\n");
    await expect.poll(() => heard).toContain(">>> ");
    await type("total = sum(range(101))\nprint('total', total)\n");
    await expect.poll(() => heard).toContain("total 5050\r\n");
    await type("1 / 0\n");
    await expect.poll(() => heard).toContain("ZeroDivisionError: division by zero\r\n");
    await type("total + 1\nexit()\n");
    await expect.poll(() => heard).toMatch(/5051\r\n[^]*\$ $/);
    expect(await sandbox().pty.kill(pid)).toBe(true);
  });
});

/** The number of processes with this command line, a pattern. */
async function running(from: Sandbox, pattern: string): Promise<string> {
  return output(`pgrep -fxc '${pattern}' || true`, from);
}
