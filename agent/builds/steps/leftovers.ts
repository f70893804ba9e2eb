/**
 * The processes that a step leaves running in its build's container, seen and killed from the host: a layer must not depend
 * on whether they are still alive.
 */

import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import type { Cgroup } from "../../containers/cgroup/cgroup.ts";
import { RUNTIME_MOUNT } from "../../containers/options.ts";
import type { ExitStatus } from "./processes.ts";

/** envd's helper, which starts with the first process and then tells of the end of each. */
const HELPER = `${RUNTIME_MOUNT}/envd/svc-exec`;
const LOOK_EVERY_MS = 50;
const KILL_LIMIT_MS = 10_000;

export interface Leftovers {
  /**
   * Waits for the end of the process `pid` (inside the container), kills all that it left, and resolves with `ended`, which
   * may have waited for their output. @throws {AppError} unavailable when one of them cannot be killed
   */
  endWith(pid: number, ended: Promise<ExitStatus>, signal: AbortSignal): Promise<ExitStatus>;
}

/** Call it before the step starts: what runs then belongs to the platform. */
export function watchLeftovers(cgroup: Pick<Cgroup, "processes" | "freeze" | "thaw">): Leftovers {
  const before = new Set(identities(cgroup));
  const left = () => identities(cgroup).filter((each) => !before.has(each) && !isHelper(each));
  return {
    async endWith(pid, ended, signal) {
      const over = new AbortController();
      const stop = () => over.abort();
      const settled = ended.then(stop, stop);
      signal.addEventListener("abort", stop, { once: true });
      try {
        const main = left().find((each) => innerPid(each) === pid);
        if (main !== undefined) await untilGone(main, over.signal);
        signal.throwIfAborted();
        await killAll(left, cgroup);
        const status = await ended;
        await settled;
        return status;
      } finally {
        signal.removeEventListener("abort", stop);
      }
    },
  };
}

/** Resolves also when the signal is aborted. */
async function untilGone(identity: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && isAlive(identity)) await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
}

/** Frozen first, so that no process starts another between the look and the kill. */
async function killAll(left: () => string[], cgroup: Pick<Cgroup, "freeze" | "thaw">): Promise<void> {
  for (const limit = performance.now() + KILL_LIMIT_MS; left().length > 0; await delay(LOOK_EVERY_MS / 5)) {
    if (performance.now() > limit)
      throw new AppError("unavailable", `the step's processes have not ended ${KILL_LIMIT_MS} ms after SIGKILL`);
    await cgroup.freeze();
    try {
      for (const each of left()) kill(each);
    } finally {
      cgroup.thaw();
    }
  }
}

/** `pid start-time` of each process on the host that is not a zombie: ids are reused. None where the container has ended. */
function identities(cgroup: Pick<Cgroup, "processes">): string[] {
  let pids: number[];
  try {
    pids = cgroup.processes();
  } catch {
    return [];
  }
  return pids.flatMap((pid) => {
    const start = startTime(pid);
    return start === undefined ? [] : [`${pid} ${start}`];
  });
}

function isHelper(identity: string): boolean {
  try {
    return readlinkSync(`/proc/${identity.split(" ", 1)[0]}/exe`) === HELPER;
  } catch {
    return false;
  }
}

function isAlive(identity: string): boolean {
  const [pid = "", start] = identity.split(" ");
  return startTime(Number(pid)) === start;
}

function kill(identity: string): void {
  if (!isAlive(identity)) return;
  try {
    process.kill(Number(identity.split(" ", 1)[0]), "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}

/** Undefined for a process that has ended, or is a zombie. */
function startTime(pid: number): string | undefined {
  const fields = fieldsOf(`/proc/${pid}/stat`);
  return fields === undefined || fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

/** The fields after the program's name, which may itself hold spaces and brackets. */
function fieldsOf(path: string): string[] | undefined {
  try {
    const text = readFileSync(path, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

function innerPid(identity: string): number | undefined {
  try {
    const ids = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${identity.split(" ", 1)[0]}/status`, "utf8"))?.[1];
    return Number(ids?.trim().split(/\s+/).at(-1));
  } catch {
    return undefined;
  }
}
