/**
 * Finds out whether this machine can store and restore memory: dumps and restores a small process of another user, as in
 * sandboxes. The result is kept until something that it depends on changes: CRIU's files, runc or the kernel.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { RunCommand } from "../../host/command.ts";
import { CRIU_PATH } from "./criu.ts";
import { explainDump } from "./dump-log.ts";

const LIMIT_MS = 15_000;
const STARTED_LIMIT_MS = 1_000;
const NOBODY = 65_534;
/** Second line of the remembered result. */
const LAZY = "lazy pages";

/** Longest program that is read for the files that it names: the installed `criu` is a script. */
const SCRIPT_BYTES = 4_096;

export interface MemoryProbe {
  readonly works: boolean;
  /** Large memory can be restored page by page. */
  readonly lazyPages: boolean;
  readonly criu: string;
  /** Why it does not work; or how it is known to work. */
  readonly detail: string;
}

/** @param remembered file that keeps the result */
export async function probeMemory(run: RunCommand, runc: string, remembered: string): Promise<MemoryProbe> {
  const broken = (criu: string, detail: string) => ({ works: false, lazyPages: false, criu, detail });
  const version = await run("criu", ["--version"], { path: CRIU_PATH }).catch((error: unknown) => error);
  if (typeof version !== "string")
    return broken(isMissing(version) ? "not installed" : "broken", whyNoVersion(version));
  const criu = /Version: (\S+)/.exec(version)?.[1] ?? "unknown";
  const about = JSON.stringify({ criu, runc, kernel: release(), files: await criuFiles() });
  const known = (await readFile(remembered, "utf8").catch(() => "")).split("\n");
  if (known[0] === about) {
    const detail = "a process was dumped and restored at an earlier start";
    return { works: true, lazyPages: known[1] === LAZY, criu, detail };
  }
  const problem = await tryOut(run);
  if (problem !== undefined) return broken(criu, problem);
  const lazyPages = await run("criu", ["check", "--feature", "uffd"], { timeoutMs: LIMIT_MS, path: CRIU_PATH }).then(
    () => true,
    () => false,
  );
  await writeFile(remembered, `${about}\n${lazyPages ? LAZY : ""}\n`).catch(() => undefined);
  return { works: true, lazyPages, criu, detail: "a process was dumped and restored" };
}

/** Changes when CRIU is installed, removed or replaced, and only then. */
export async function criuFiles(path = CRIU_PATH): Promise<string> {
  for (const directory of path.split(":")) {
    const program = await stamp(join(directory, "criu"));
    if (program === undefined) continue;
    const text = program.size > SCRIPT_BYTES ? "" : await readFile(program.path, "utf8").catch(() => "");
    const named = [...new Set(text.match(/\/[\w./+-]+/g))].filter((one) => one.includes("criu"));
    const parts = await Promise.all(named.map(stamp));
    return [program, ...parts].map((one) => (one === undefined ? "-" : `${one.path} ${one.size} ${one.at}`)).join("; ");
  }
  return "";
}

async function stamp(file: string): Promise<{ path: string; size: number; at: number } | undefined> {
  try {
    const path = await realpath(file);
    const { size, mtimeMs } = await stat(path);
    return { path, size, at: mtimeMs };
  } catch {
    return undefined;
  }
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

function whyNoVersion(error: unknown): string {
  if (isMissing(error)) return "CRIU is not installed";
  const said = error instanceof Error ? error.message : String(error);
  return `CRIU does not start: ${said.replaceAll(/[^\x20-\x7e]+/g, " ").slice(0, 300)}`;
}

/** Why memory cannot be stored or restored; undefined when both work. */
async function tryOut(run: RunCommand): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), "svc-probe-"));
  const child = spawn("sleep", ["60"], { uid: NOBODY, gid: NOBODY, cwd: "/", detached: true, stdio: "ignore" });
  child.once("error", () => undefined);
  const { pid } = child;
  const criu = (...args: string[]) => run("criu", args, { timeoutMs: LIMIT_MS, path: CRIU_PATH });
  const images = ["--images-dir", directory];
  try {
    if (pid === undefined) return "no process could be started as another user";
    const gone = once(child, "exit");
    await execed(pid);
    const dumped = await criu("dump", "--tree", String(pid), ...images, "--log-file", "dump.log").catch(
      () => undefined,
    );
    if (dumped === undefined) return `a process could not be dumped: ${await why(join(directory, "dump.log"))}`;
    await gone;
    const back = await criu("restore", "--restore-detached", ...images, "--log-file", "restore.log").catch(
      () => undefined,
    );
    if (back === undefined) return `a process could not be restored: ${await why(join(directory, "restore.log"))}`;
    return (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim() === "sleep"
      ? undefined
      : "a restored process was not there";
  } finally {
    // The restored process is not a child of this program, so its name is checked: process ids are reused.
    if (pid !== undefined && (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim() === "sleep")
      process.kill(pid, "SIGKILL");
    await rm(directory, { recursive: true, force: true });
  }
}

/** Waits until the child runs `sleep`; before that it is still a copy of this program. */
async function execed(pid: number): Promise<void> {
  const deadline = performance.now() + STARTED_LIMIT_MS;
  while (performance.now() < deadline) {
    if ((await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim() === "sleep") return;
    await delay(5);
  }
}

async function why(log: string): Promise<string> {
  return explainDump(await readFile(log, "utf8").catch(() => "")).reason;
}
