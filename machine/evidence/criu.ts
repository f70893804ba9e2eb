/** Dumps and restores a small process of another user, as the processes of sandboxes are. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lastWords } from "../base/commands.ts";
import type { CriuSeen } from "./evidence.ts";
import type { Machine } from "./gather.ts";

const LIMIT_MS = 15_000;
/** Of nobody, without open files of the caller, in a session of its own. It ends by itself. */
const PROCESS =
  'setsid setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "cd / && exec sleep 60" </dev/null >/dev/null 2>&1 & echo $!';

export async function tryCriu({ run, places }: Machine): Promise<CriuSeen> {
  const path = places.criu;
  const said = await run(path, ["--version"]);
  const version = /^Version: *(.*)$/m.exec(said.stdout)?.[1];
  if (version === undefined) return { path, version: undefined, problem: lastWords(said) };
  const images = await mkdtemp(join(tmpdir(), "svc-doctor-criu-"));
  const processes: number[] = [];
  try {
    const started = await run("sh", ["-c", PROCESS]);
    const pid = Number(started.stdout.trim());
    if (!Number.isInteger(pid) || pid <= 0)
      return { path, version, problem: `no process to dump: ${lastWords(started)}` };
    processes.push(pid);
    if (!(await becomes(pid, "sleep"))) return { path, version, problem: "the process to dump did not start" };
    const common = ["--images-dir", images, "--log-file"];
    const dumped = await run(path, ["dump", "--tree", String(pid), ...common, "dump.log"], { limitMs: LIMIT_MS });
    if (dumped.status !== 0)
      return { path, version, problem: await words(join(images, "dump.log"), lastWords(dumped)) };
    const back = await run(path, ["restore", "--restore-detached", ...common, "restore.log"], { limitMs: LIMIT_MS });
    const failed = back.status !== 0 || !(await becomes(pid, "sleep"));
    return { path, version, problem: failed ? await words(join(images, "restore.log"), lastWords(back)) : undefined };
  } finally {
    for (const pid of processes) if (await becomes(pid, "sleep", 1)) process.kill(pid, "SIGKILL");
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
