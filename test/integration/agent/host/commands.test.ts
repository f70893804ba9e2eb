/** Programs of the host that a small program starts for the agent: nobody who runs one sees a difference. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RunCommand, runCommand } from "../../../../agent/host/command.ts";
import { hostCommands } from "../../../../agent/host/commands/commands.ts";
import { nativeProgram } from "../../../../agent/host/native-program.ts";

const refuse: RunCommand = () => Promise.reject(new Error("started by the agent itself"));
const made = { directory: "", program: "" };

beforeAll(async () => {
  made.directory = await mkdtemp(join(tmpdir(), "svc-commands-"));
  made.program = await nativeProgram(runCommand, "host/commands/svc-commands", made.directory);
});
afterAll(() => rm(made.directory, { recursive: true }));

function small(): RunCommand {
  const commands = hostCommands(() => Promise.resolve(made.program), refuse);
  onTestFinished(() => commands.stop());
  return commands.run;
}

/** The process that starts a command of `run`. */
const starter = async (run: RunCommand) => Number(await run("sh", ["-c", "echo $PPID"]));

describe.each([
  { by: "the agent itself", open: () => runCommand },
  { by: "svc-commands", open: small },
])("a program that is started by $by", ({ open }) => {
  test("gets its arguments, input and environment, and its output comes back", async () => {
    const run = open();
    expect(await run("printf", ["%s|", "", "a b", "ü\n"])).toBe("|a b|ü\n|");
    expect(await run("cat", [], { input: "text" })).toBe("text");
    expect(await run("cat", [], { input: new Uint8Array([49, 0, 50]) })).toBe("1\x002");
    expect(await run("sh", ["-c", "echo $HOME"])).toBe(`${process.env["HOME"] ?? ""}\n`);
    expect(await run("env", [], { path: "/usr/bin:/bin" })).toBe("PATH=/usr/bin:/bin\n");
    expect(await run("sh", ["-c", "umask; pwd"])).toBe(await runCommand("sh", ["-c", "umask; pwd"]));
  });

  test("has neither files of others nor signals that are blocked or ignored", async () => {
    const run = open();
    const look = ["-c", "ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status"];
    // This process may have been started with more.
    expect(await run("sh", look)).toBe(await runCommand("sh", look));
  });

  test("that fails has its exit code, signal and words in the error", async () => {
    const run = open();
    await expect(run("sh", ["-c", "echo why >&2; exit 3"])).rejects.toThrow(
      "sh -c echo why >&2; exit 3 ended with 3: why",
    );
    await expect(run("sh", ["-c", "kill -TERM $$"])).rejects.toThrow("ended with SIGTERM");
    const missing = await run("/no/such/program", []).catch((error: unknown) => error);
    const cause = { code: "ENOENT", message: "spawn /no/such/program ENOENT" };
    expect(missing).toMatchObject({ message: "cannot run /no/such/program", cause });
    await expect(run("sh", [], { path: "/nowhere" })).rejects.toThrow("cannot run sh");
    await expect(run("true", ["a\0b"])).rejects.toThrow();
  });

  test("may read and write much, or nothing of its input", async () => {
    const run = open();
    const much = "0123456789abcdef".repeat(200_000);
    expect((await run("cat", [], { input: much })) === much).toBe(true);
    expect(await run("sh", ["-c", "exec <&-; sleep 0.1; echo done"], { input: much })).toBe("done\n");
    const all = await Promise.all(Array.from({ length: 60 }, (_, at) => run("sh", ["-c", `sleep 0.05; echo ${at}`])));
    expect(all).toEqual(all.map((_, at) => `${at}\n`));
  });

  test("is ended by its signal and by its limit", async () => {
    const run = open();
    const end = new AbortController();
    const aborted = run("sleep", ["60"], { signal: end.signal });
    setTimeout(() => end.abort(), 50);
    await expect(aborted).rejects.toThrow("sleep 60 ended with SIGKILL");
    await expect(run("sleep", ["60"], { signal: AbortSignal.abort() })).rejects.toThrow("ended with SIGKILL");
    await expect(run("sleep", ["60"], { timeoutMs: 50 })).rejects.toThrow("did not end within its limit of 0.05 s");
  });

  test("has ended when no program that it has started can write for it any more", async () => {
    expect(await open()("sh", ["-c", "(sleep 0.2; echo late) & echo first"])).toBe("first\nlate\n");
  });
});

test("one process starts all commands, and another one after its end, which fails the commands under way", async () => {
  const run = small();
  const first = await starter(run);
  expect(await starter(run)).toBe(first);
  expect(first).not.toBe(process.pid);
  const underWay = run("sleep", ["60"]);
  underWay.catch(() => undefined);
  const sleeping = Number(await run("pgrep", ["-P", String(first), "sleep"]));
  onTestFinished(() => void process.kill(sleeping, "SIGKILL"));
  process.kill(first, "SIGKILL");
  await expect(underWay).rejects.toThrow("sleep 60: svc-commands has ended: how its command ended is not known");
  expect(await starter(run)).not.toBe(first);
});

test("it and its commands are in no process group of the agent, whose members Ctrl+C ends", async () => {
  const run = small();
  const groupOf = async (pid: number) => Number((await run("ps", ["-o", "pgid=", "-p", String(pid)])).trim());
  const starting = await starter(run);
  const command = Number(await run("sh", ["-c", "ps -o pgid= -p $$"]));
  expect([await groupOf(starting), command]).toEqual([starting, starting]);
  expect(await groupOf(process.pid)).not.toBe(starting);
});

test("where it cannot be made or started, the agent starts the programs itself", async () => {
  const failing = [() => Promise.reject(new Error("no compiler")), () => Promise.resolve("/no/such/program")];
  for (const program of failing) {
    const { run } = hostCommands(program, runCommand);
    expect(await starter(run)).toBe(process.pid);
    expect(await starter(run)).toBe(process.pid);
  }
});

test("the agent itself starts a program with more words or input than svc-commands takes", async () => {
  const commands = hostCommands(() => Promise.resolve(made.program), runCommand);
  onTestFinished(() => commands.stop());
  const ask = ["-c", "cat >/dev/null; echo $PPID"];
  const ofMany = (count: number) => commands.run("sh", [...ask, ...Array.from({ length: count - 2 }, () => "word")]);
  const ofInput = (size: number) => commands.run("sh", ask, { input: new Uint8Array(size) });
  const small = await ofMany(255);
  expect([small, await ofInput(4_194_304)]).toEqual([small, small]);
  const own = `${process.pid}\n`;
  expect([await ofMany(256), await ofInput(4_194_305)]).toEqual([own, own]);
  expect(small).not.toBe(own);
});

test("it ends with the agent, and by a request that it does not understand", async () => {
  for (const input of ["", "not a frame at all: its length is too large"]) {
    const child = spawn(made.program, [], { stdio: ["pipe", "ignore", "ignore"] });
    child.stdin.end(input);
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code).toBe(input === "" ? 0 : 2);
  }
});
