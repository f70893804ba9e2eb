/** Dumps and restores a small process of another user, as the processes of sandboxes are. */

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lastWords, PATH } from "../base/commands.ts";
import { withDeadline } from "../base/deadline.ts";
import { textOf } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import type { CriuSeen } from "./evidence.ts";

const LIMIT_MS = 15_000;
/** Of nobody, without files of the caller, in a session of its own. It ends by itself. */
const PROCESS = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "60"];

/** Under a filter of system calls it tries nothing: CRIU cannot dump a process with one while it has one itself, and both inherit it. */
export async function tryCriu(machine: Machine): Promise<CriuSeen> {
  const path = machine.places.criu;
  const said = await machine.run(path, ["--version"]);
  const version = /^Version: *(.*)$/m.exec(said.stdout)?.[1];
  if (version === undefined) return { path, version: undefined, problem: lastWords(said) };
  if (isFiltered(textOf("/proc/self/status") ?? ""))
    return { path, version, problem: "this process has a filter of system calls", filtered: true };
  return { path, version, problem: await attemptIn(machine) };
}

/** Pure. @param status of a process, from /proc */
export function isFiltered(status: string): boolean {
  return /^Seccomp:\s*[12]$/m.test(status);
}

/** Why a process could not be dumped and restored; undefined when it was. */
async function attemptIn({ run, places }: Machine): Promise<string | undefined> {
  const path = places.criu;
  const images = await mkdtemp(join(tmpdir(), "svc-doctor-criu-"));
  // A child of this process, which takes its status: a number that a zombie has cannot be restored.
  const child = spawn("setpriv", PROCESS, { detached: true, stdio: "ignore", cwd: "/", env: { PATH } });
  const ended = new Promise<void>((resolve) => void child.once("exit", () => resolve()).once("error", () => resolve()));
  const pid = child.pid ?? 0;
  const attempt = async (verb: "dump" | "restore", ...args: readonly string[]): Promise<string | undefined> => {
    const log = `${verb}.log`;
    const done = await run(path, [verb, ...args, "--images-dir", images, "--log-file", log], { limitMs: LIMIT_MS });
    return done.status === 0 ? undefined : words(join(images, log), lastWords(done));
  };
  try {
    if (!(await becomes(pid, "sleep"))) return "the process to dump did not start";
    const undumped = await attempt("dump", "--tree", String(pid));
    if (undumped !== undefined) return `dump: ${undumped}`;
    await withDeadline(ended, LIMIT_MS);
    const unrestored = await attempt("restore", "--restore-detached");
    if (unrestored !== undefined) return `restore: ${unrestored}`;
    return (await becomes(pid, "sleep")) ? undefined : "the restored process does not run";
  } finally {
    if (await becomes(pid, "sleep", 1)) process.kill(pid, "SIGKILL");
    await rm(images, { recursive: true, force: true });
  }
}

async function becomes(pid: number, name: string, tries = 100): Promise<boolean> {
  for (let left = tries; left > 0; left--) {
    const is = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
    if (is.trim() === name) return true;
    if (left > 1) await new Promise((resolve) => void setTimeout(resolve, 20));
  }
  return false;
}

/** What CRIU's log calls an error. */
async function words(log: string, otherwise: string): Promise<string> {
  const text = await readFile(log, "utf8").catch(() => "");
  return (
    text
      .split("\n")
      .find((line) => /\bError\b/.test(line))
      ?.trim()
      .slice(0, 300) ?? otherwise
  );
}
