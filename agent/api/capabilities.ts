/** Finds what this node can do, by trying rather than by version, for the orchestrator and for operators. */

import { existsSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import type { NodeFacts } from "../../shared/agent-api/routes.ts";
import type { AgentConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import { runCommand } from "../host/command.ts";
import { probeEnding } from "../snapshots/connections/probe-ending.ts";
import { noteKernelFeatures } from "../snapshots/criu/kernel-features.ts";
import { criuFiles, type MemoryProbe, probeMemory } from "../snapshots/criu/probe-memory.ts";

export interface Abilities {
  /** @param seen what sandboxes see of their own memory and processors */
  readonly probe: (seen: string) => Promise<NodeFacts["capabilities"]>;
  /** Changes with the files of CRIU, on which the abilities depend. */
  readonly fingerprint: () => Promise<string>;
}

export function hostAbilities({ stateDir }: AgentConfig, containers: Containers): Abilities {
  return {
    probe: (seen) =>
      probe(containers, {
        async memory(runc) {
          // Where it fails the probe says why.
          await noteKernelFeatures(runCommand).catch(() => undefined);
          return probeMemory(runCommand, runc, join(stateDir, "memory-probe.json"));
        },
        ending: () => probeEnding(runCommand),
        seen,
      }),
    fingerprint: () => criuFiles(),
  };
}

async function probe(
  containers: Pick<Containers, "facts">,
  probes: {
    readonly memory: (runc: string) => Promise<MemoryProbe>;
    readonly ending: () => Promise<string>;
    readonly seen: string;
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
      sizes: probes.seen,
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
