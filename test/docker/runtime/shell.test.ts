/** The program that stands for the first process of a container without processes, with scripts in the place of svc-runc. */

import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { callShell } from "../../../agent/containers/call-shell.ts";

const run = promisify(execFile);
const SOURCE = new URL("../../../scripts/host/runtime/svc-shell.c", import.meta.url).pathname;
const SCRIPT = new URL("../../../scripts/host/runtime/svc-runc", import.meta.url).pathname;
const RUN_DIRECTORY = "/run/svc-shelltest";
const GROUPS = "/sys/fs/cgroup/memory";

let work: string;
let program: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-shell-"));
  program = join(work, "svc-shell");
  await run("cc", ["-std=c11", "-Os", "-o", program, SOURCE]);
});
afterAll(() => rm(work, { recursive: true, force: true }));

interface Waiting {
  readonly id: string;
  readonly directory: string;
  readonly pid: number;
  readonly group: string;
  /** How it ended: exit code or signal. */
  readonly end: Promise<number | string | null>;
}

let number = 0;

/** @param script stands for svc-runc: `$pidfile` is where it writes the restored first process, `$dir` the annotations */
async function waiting(script: string): Promise<Waiting> {
  const id = `shell-${process.pid}-${++number}`;
  const directory = join(RUN_DIRECTORY, "containers", id);
  const [pidFile, group, restore] = [join(work, `${id}.pid`), join(GROUPS, id), join(work, `${id}.sh`)];
  await mkdir(directory, { recursive: true });
  await writeFile(restore, `#!/bin/sh\npidfile=${pidFile} dir=${directory}\n${script}\n`, { mode: 0o755 });
  // The subreaper stands for the shim: it sees how the program ends.
  const shim = spawn("python3", ["-c", SHIM, program, directory, pidFile, group, restore], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = new Promise<number | string | null>((resolve) => {
    shim.once("exit", (code, signal) => resolve(signal ?? code));
  });
  onTestFinished(async () => {
    await rm(directory, { recursive: true, force: true });
    await end;
    await rmdir(group).catch(() => undefined);
    await rm(RUN_DIRECTORY, { recursive: true, force: true });
  });
  const pid = () => (existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : 0);
  await expect.poll(pid).toBeGreaterThan(0);
  return { id, directory, pid: pid(), group, end };
}

/** Starts the program, and ends as the process ends whose id it has written. */
const SHIM = `
import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if subprocess.call(sys.argv[1:]): sys.exit(99)
pid = int(open(sys.argv[3]).read())
while True:
    one, status = os.wait()
    if one == pid: break
if os.WIFSIGNALED(status): os.kill(os.getpid(), os.WTERMSIG(status))
sys.exit(os.WEXITSTATUS(status))
`;
const isAlive = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
const groupOf = async (pid: number) => /:memory:(.*)/.exec(await readFile(`/proc/${pid}/cgroup`, "utf8"))?.[1];

/** As CRIU does: the process is a grandchild whose parent is gone. */
const restored = (command: string) => `was=$(cat "$pidfile")
(setsid sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec ${command}' "$pidfile" </dev/null >/dev/null 2>&1 &)
while [ "$(cat "$pidfile")" = "$was" ]; do sleep 0.01; done`;

test("it waits in the container's group, and restores when it is called", async () => {
  const shell = await waiting(`[ "$SVC_SHELL" = restores ] || exit 1\n${restored("sleep 1000")}`);
  expect(await groupOf(shell.pid)).toBe(`/${shell.id}`);
  const first = await callShell(join(shell.directory, "call"));
  expect(isAlive(first)).toBe(true);
  expect(Number(await readFile(join(shell.directory, "process"), "utf8"))).toBe(first);
  expect(await groupOf(shell.pid)).toBe("/");
  expect(existsSync(join(shell.directory, "waiting"))).toBe(false);
  expect(isAlive(shell.pid)).toBe(true);
  process.kill(first, "SIGKILL");
  expect(await shell.end).toBe("SIGKILL");
});

test.each([0, 7])("it ends with the exit code of the restored process: %i", async (code) => {
  const shell = await waiting(restored(`sh -c "exit ${code}"`));
  await callShell(join(shell.directory, "call"));
  expect(await shell.end).toBe(code);
});

test("a failed restore is told with the words of svc-runc, and ends it", async () => {
  const shell = await waiting(`echo "svc-runc: restore from /x failed: no such thing" >>"$dir/words"; exit 1`);
  await expect(callShell(join(shell.directory, "call"))).rejects.toThrow("restore from /x failed: no such thing");
  expect(await shell.end).toBe(1);
});

test("without its annotations it ends, and its group goes", async () => {
  const shell = await waiting("exit 1");
  await rm(shell.directory, { recursive: true });
  expect(await shell.end).toBe("SIGKILL");
  expect(existsSync(shell.group)).toBe(false);
});

test("a caller that is gone does not undo the restore", async () => {
  const shell = await waiting(`sleep 0.3\n${restored("sleep 1000")}`);
  const caller = spawn(process.execPath, [
    "-e",
    `require("node:net").connect(${JSON.stringify(join(shell.directory, "call"))})`,
  ]);
  await expect.poll(() => existsSync(join(shell.directory, "waiting"))).toBe(false);
  caller.kill("SIGKILL");
  const place = join(shell.directory, "process");
  await expect.poll(() => existsSync(place) && readFileSync(place, "utf8") !== "").toBe(true);
  process.kill(Number(readFileSync(place, "utf8")), "SIGKILL");
  expect(await shell.end).toBe("SIGKILL");
});

test("svc-runc answers for one that waits: its state, a start that does nothing, and a kill", async () => {
  const shell = await waiting("exit 1");
  const ask = (...args: string[]) => spawnSync("sh", [SCRIPT, "--root", work, ...args], { encoding: "utf8" });
  expect(JSON.parse(ask("state", shell.id).stdout)).toMatchObject({ id: shell.id, status: "running", pid: shell.pid });
  expect(ask("start", shell.id).status).toBe(0);
  expect(isAlive(shell.pid)).toBe(true);
  expect(ask("kill", "--all", shell.id, "9").status).toBe(0);
  expect(await shell.end).toBe("SIGKILL");
});
