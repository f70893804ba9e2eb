/** One container's cgroup on the host, versions 1 and 2: freezes and resizes without Docker, and measures use. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import { memoryKills, memoryV1, memoryV2, socketBufferLimit, type Usage, usageUsV2 } from "./cgroup-files.ts";
import { type Size, setLimits } from "./limits.ts";

const ROOT = "/sys/fs/cgroup";
const FREEZE_LIMIT_MS = 2_000;
const KILL_LIMIT_MS = 5_000;

export interface Cgroup {
  /** Resolves when every process inside has stopped. */
  freeze(): Promise<void>;
  thaw(): void;
  /** The cgroup is frozen or being frozen; false also when it has ended. */
  frozen(): boolean;
  /** The container's first process runs. */
  alive(): boolean;
  /** Kills the first process, and with it all others; resolves when all are dead. Already dead counts as success. */
  kill(): Promise<void>;
  usage(): Usage;
  /** Sets its limits, frozen or running. When it throws, the container must not be used any more. */
  resize(size: Size): void;
  /** Processes inside that the kernel killed because the container had used up its memory. */
  memoryKills(): number;
  /** Process ids on the host. */
  processes(): number[];
}

/** The cgroups of the container whose first process is `pid`. Checks the container id: process ids are reused. */
export type OpenCgroup = (pid: number, containerId: string) => Cgroup;

export const openCgroup: OpenCgroup = (pid, containerId) => {
  const first = firstProcess(pid, containerId);
  const memberships = first.memberships();
  if (memberships === undefined) throw new AppError("sandbox_create_failed", "the container's first process is gone");
  const group = existsSync(`${ROOT}/cgroup.controllers`) ? unified(memberships) : divided(memberships);
  return {
    ...group,
    alive: () => first.memberships() !== undefined,
    async kill() {
      first.kill();
      // A frozen process takes the signal when it is thawed; a freeze that began just before may freeze it once more.
      // The group disappears together with the process.
      await until(() => {
        if (first.memberships() === undefined) return true;
        tryTo(group.thaw);
        return false;
      }, KILL_LIMIT_MS);
    },
  };
};

type Group = Pick<Cgroup, "freeze" | "thaw" | "frozen" | "usage" | "memoryKills" | "resize" | "processes">;

function firstProcess(pid: number, containerId: string) {
  // Undefined for another container and for a zombie, whose cgroup can still be read although everything inside is dead.
  const memberships = (): string | undefined => {
    try {
      const text = read(`/proc/${pid}/cgroup`);
      return text.includes(containerId) && !/^State:\s+[ZX]/m.test(read(`/proc/${pid}/status`)) ? text : undefined;
    } catch {
      return undefined;
    }
  };
  return {
    memberships,
    kill() {
      if (memberships() === undefined) return;
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The container ended meanwhile.
      }
    },
  };
}

function unified(memberships: string): Group {
  const directory = `${ROOT}${pathOf(memberships, "")}`;
  return {
    async freeze() {
      writeFileSync(`${directory}/cgroup.freeze`, "1");
      await until(() => /^frozen 1$/m.test(read(`${directory}/cgroup.events`)), FREEZE_LIMIT_MS);
    },
    thaw: () => writeFileSync(`${directory}/cgroup.freeze`, "0"),
    frozen: () => tryRead(`${directory}/cgroup.freeze`).trim() === "1",
    processes: () => numbers(read(`${directory}/cgroup.procs`)),
    memoryKills: () => memoryKills(read(`${directory}/memory.events`)),
    usage: () => ({
      cpuUs: usageUsV2(read(`${directory}/cpu.stat`)),
      ...memoryV2(read(`${directory}/memory.current`), read(`${directory}/memory.stat`)),
    }),
    resize: (size) => setLimits({ version: 2, memory: directory, cpu: directory, cpuset: directory }, size),
  };
}

function divided(memberships: string): Group {
  const group = `${ROOT}/freezer${pathOf(memberships, "freezer")}`;
  const freezer = `${group}/freezer.state`;
  const cpu = `${ROOT}/cpuacct${pathOf(memberships, "cpuacct")}/cpuacct.usage`;
  const memory = `${ROOT}/memory${pathOf(memberships, "memory")}`;
  const limited = {
    version: 1,
    memory,
    cpu: `${ROOT}/cpu${pathOf(memberships, "cpu")}`,
    cpuset: `${ROOT}/cpuset${pathOf(memberships, "cpuset")}`,
  } as const;
  tryTo(() => boundSocketBuffers(memory));
  return {
    async freeze() {
      writeFileSync(freezer, "FROZEN");
      // A process that forks during the freeze can leave the group half frozen until it is frozen again.
      await until(() => {
        if (read(freezer).trim() === "FROZEN") return true;
        writeFileSync(freezer, "FROZEN");
        return false;
      }, FREEZE_LIMIT_MS);
    },
    thaw: () => writeFileSync(freezer, "THAWED"),
    frozen: () => /^(FROZEN|FREEZING)$/.test(tryRead(freezer).trim()),
    processes: () => numbers(read(`${group}/cgroup.procs`)),
    memoryKills: () => memoryKills(read(`${memory}/memory.oom_control`)),
    usage: () => ({
      cpuUs: Math.round(Number(read(cpu)) / 1_000),
      ...memoryV1(read(`${memory}/memory.usage_in_bytes`), read(`${memory}/memory.stat`)),
    }),
    resize(size) {
      setLimits(limited, size);
      tryTo(() => boundSocketBuffers(memory));
    },
  };
}

/**
 * Version 1 counts buffers of sockets apart from other memory, and without a limit of their own not at all: one sandbox
 * could take all that the machine has for TCP (`tcp_mem`). Counts for sockets that are opened from now on.
 */
function boundSocketBuffers(memory: string): void {
  const limit = socketBufferLimit(read(`${memory}/memory.limit_in_bytes`));
  if (limit !== undefined) writeFileSync(`${memory}/memory.kmem.tcp.limit_in_bytes`, String(limit));
}

/** A line is `id:controllers:path`. Version 2 has one line, with no controllers. */
function pathOf(memberships: string, controller: string): string {
  for (const line of memberships.split("\n")) {
    const [, controllers = "", ...path] = line.split(":");
    if (controllers.split(",").includes(controller)) return path.join(":");
  }
  throw new AppError("internal", `the container is in no ${controller === "" ? "unified" : controller} cgroup`);
}

function numbers(text: string): number[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
}

function read(path: string): string {
  return readFileSync(path, "utf8");
}

function tryTo(work: () => void): void {
  try {
    work();
  } catch {
    // The container ended meanwhile, or the kernel has no such file.
  }
}

function tryRead(path: string): string {
  try {
    return read(path);
  } catch {
    return "";
  }
}

async function until(done: () => boolean, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!done()) {
    if (performance.now() > deadline)
      throw new AppError("internal", `the container did not end or freeze within ${limitMs} ms`);
    await delay(1);
  }
}
