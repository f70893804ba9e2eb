/** The limits that the kernel sets to the Docker daemon, and with it to what the daemon can grant to a sandbox. */

import { readFileSync } from "node:fs";

const ENGINE_PID_FILE = "/var/run/docker.pid";

/**
 * Most files that a sandbox may open. Docker cannot grant more than its own limit, which its pid file leads to, unless
 * it may raise limits (CAP_SYS_RESOURCE).
 */
export function openFileLimit(wanted = 65_536, engine = engineLimits()): number {
  const hard = engine.hard("Max open files") ?? "1024";
  return engine.mayRaise || hard === "unlimited" ? wanted : Math.min(wanted, Number(hard));
}

/**
 * The kernel counts these for a user id, and all sandboxes have the same user ids: with a limit, one sandbox could use up
 * that of all others. What they count takes memory and processes of the sandbox, which have limits of their own.
 */
const COUNTED_BY_USER = {
  nproc: "Max processes",
  sigpending: "Max pending signals",
  msgqueue: "Max msgqueue size",
  memlock: "Max locked memory",
} as const;

/** By Docker's name; -1 is no limit. Where Docker may not raise limits, they are its own. */
export function userLimits(engine = engineLimits()): Record<keyof typeof COUNTED_BY_USER, number> {
  const most = (name: string) => {
    const hard = engine.hard(name);
    return engine.mayRaise || hard === undefined || hard === "unlimited" ? -1 : Number(hard);
  };
  const { nproc, sigpending, msgqueue, memlock } = COUNTED_BY_USER;
  return { nproc: most(nproc), sigpending: most(sigpending), msgqueue: most(msgqueue), memlock: most(memlock) };
}

interface EngineLimits {
  /** Whether it may grant more than its own hard limits. */
  readonly mayRaise: boolean;
  /** A hard limit by the kernel's name; undefined where the kernel does not have it. */
  hard(name: string): string | undefined;
}

function engineLimits(): EngineLimits {
  const pid = tryRead(ENGINE_PID_FILE)?.trim() ?? "self";
  const text = (file: string) => tryRead(`/proc/${pid}/${file}`) ?? tryRead(`/proc/self/${file}`) ?? "";
  return parseEngineLimits(text("status"), text("limits"));
}

/** Pure. @param status, limits texts of the files of /proc with these names */
export function parseEngineLimits(status: string, limits: string): EngineLimits {
  const capabilities = BigInt(`0x${/^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  return {
    mayRaise: ((capabilities >> 24n) & 1n) === 1n,
    hard: (name: string) => new RegExp(`^${name} +\\S+ +(\\S+)`, "m").exec(limits)?.[1],
  };
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
