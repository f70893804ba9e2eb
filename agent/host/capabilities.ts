/** Finds what this node can do, by trying rather than by version, for the orchestrator and for operators. */

import { existsSync, readFileSync } from "node:fs";
import { cpus, release } from "node:os";
import type { NodeFacts } from "../../shared/agent-api/routes.ts";
import type { Containers } from "../containers/containers.ts";
import { parseCpus } from "../sizes/cpu-sets.ts";
import type { MemoryProbe } from "../snapshots/probe-memory.ts";

export async function probe(
  containers: Pick<Containers, "facts">,
  probes: {
    readonly memory: (runc: string) => Promise<MemoryProbe>;
    readonly ending: () => Promise<string>;
    readonly sizes: string;
  },
): Promise<NodeFacts["capabilities"]> {
  const engine = await containers.facts();
  const [memory, connections] = await Promise.all([probes.memory(engine.runcVersion), probes.ending()]);
  return {
    memorySnapshots: memory.works,
    lazyPages: memory.lazyPages,
    diskLimit: engine.diskLimit,
    // The same as for disks: an image can be made and mounted.
    volumes: engine.diskLimit,
    detail: {
      criu: memory.criu,
      memorySnapshots: memory.detail,
      lazyPages: lazyDetail(memory),
      diskLimit: engine.diskDetail,
      volumes: engine.diskLimit ? "for sandboxes of this node; not over NFS" : engine.diskDetail,
      connections,
      sizes: probes.sizes,
      cgroup: existsSync("/sys/fs/cgroup/cgroup.controllers") ? "v2" : "v1",
      engine: engine.version,
      storageDriver: engine.storageDriver,
      runc: engine.runcVersion,
      seccomp: engine.seccomp ? "own profile" : "the Docker daemon has no seccomp: sandboxes cannot start",
      kernel: release(),
    },
  };
}

function lazyDetail({ works, lazyPages }: MemoryProbe): string {
  if (!works) return "no memory can be restored";
  return lazyPages
    ? "large memory is restored page by page"
    : "the kernel has no userfaultfd for CRIU: memory of any size is read before a sandbox runs";
}

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

/** The processors that this program may use, and so may sandboxes. */
export function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(tryRead("/proc/self/status") ?? "")?.[1] ?? "";
  const found = parseCpus(list);
  return found.length > 0 ? found : cpus().map((_, index) => index);
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
