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
    diskLimit: engine.diskLimit,
    detail: {
      criu: memory.criu,
      memorySnapshots: memory.detail,
      diskLimit: engine.diskDetail,
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

/**
 * Most files that a sandbox may open. Docker cannot grant more than its own limit, which its pid file leads to, unless
 * it may raise limits (CAP_SYS_RESOURCE).
 */
export function openFileLimit(wanted = 65_536, pidFile = "/var/run/docker.pid"): number {
  const pid = tryRead(pidFile)?.trim() ?? "self";
  const status = tryRead(`/proc/${pid}/status`) ?? tryRead("/proc/self/status") ?? "";
  const limits = tryRead(`/proc/${pid}/limits`) ?? tryRead("/proc/self/limits") ?? "";
  const capabilities = BigInt(`0x${/^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  const mayRaise = ((capabilities >> 24n) & 1n) === 1n;
  const hard = /^Max open files +\S+ +(\S+)/m.exec(limits)?.[1] ?? "1024";
  return mayRaise || hard === "unlimited" ? wanted : Math.min(wanted, Number(hard));
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
