/** The agent's access to the real machine: Docker, kernel, network. Tests pass another set. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Log } from "../shared/program/log.ts";
import { hostAbilities } from "./api/capabilities.ts";
import { hostDoctor } from "./api/doctor.ts";
import { hostBlobs } from "./blobs/host-blobs.ts";
import { hostBuildTools } from "./builds/tools.ts";
import type { AgentConfig } from "./config.ts";
import type { Containers } from "./containers/containers.ts";
import { dockerContainers } from "./containers/docker.ts";
import { hostDocker } from "./containers/host-docker.ts";
import { seccompProfile } from "./containers/seccomp/seccomp.ts";
import { createCpuSets } from "./cpu-sets/cpu-sets.ts";
import { withCpuSets } from "./cpu-sets/with-cpu-sets.ts";
import type { AgentDeps, AgentMachine } from "./deps.ts";
import { hostEgress } from "./egress-supervisor/host-egress.ts";
import { runCommand } from "./host/command.ts";
import { hostCommands } from "./host/commands/commands.ts";
import { allowedCpus } from "./host/cpu-list.ts";
import { openFileLimit, userLimits } from "./host/engine-limits.ts";
import { hostMachine } from "./host/machine.ts";
import { nativeProgram } from "./host/native-program.ts";
import { planNetwork } from "./network/addresses.ts";
import { hostNetwork } from "./network/host-network.ts";
import { nodeProbe } from "./network/reach/node-probe.ts";
import { hostNodeDisks, hostSandboxDisks } from "./node-disk/host-disks.ts";
import { hostProcfs } from "./procfs/procfs.ts";
import type { Disks } from "./sandbox-disks/disks.ts";
import { withDisks } from "./sandbox-disks/with-disks.ts";
import { hostMemory } from "./snapshots/take/host-memory.ts";
import { hostState } from "./store/state.ts";
import { createVolumeFiles } from "./volumes/volume-files.ts";
import { hostVolumes } from "./volumes/volumes.ts";

const PROCFS_PARTS = ["serve", "files", "container", "rebind"];

export function hostDeps(config: AgentConfig, log: Log, environment: NodeJS.ProcessEnv = {}): AgentDeps {
  return { machine: machineOf(config, log, environment), state: hostState(config), now: Date.now, log };
}

function machineOf(config: AgentConfig, log: Log, environment: NodeJS.ProcessEnv): AgentMachine {
  const { runDir, stateDir } = config;
  const plan = planNetwork(config.networkName, config.subnet);
  const egress = hostEgress(config, { gateway: plan.gateway, environment, log });
  const { run } = hostCommands(() => nativeProgram(runCommand, "host/commands/svc-commands", runDir));
  const disks = hostSandboxDisks(config, run);
  const containers = containersOf(config, disks, log);
  const volumes = hostVolumes({ root: join(disks.root, "volumes"), run });
  const network = hostNetwork(config, plan, { egressPort: egress.port, run, log });
  return {
    host: hostMachine([stateDir, "/var/lib/docker"]),
    docker: hostDocker(config, containers),
    network,
    reachProbe: nodeProbe(config, network),
    egress,
    disks: hostNodeDisks(config, disks),
    volumes,
    volumeFiles: createVolumeFiles({
      volumes,
      program: () => nativeProgram(runCommand, "volumes/svc-volume-files", runDir),
    }),
    memory: hostMemory(config, plan, run),
    tools: hostBuildTools(),
    procfs: hostProcfs({
      run: runCommand,
      place: join(runDir, "sizes"),
      program: () => nativeProgram(runCommand, "procfs/program/svc-sizes", runDir, PROCFS_PARTS),
      log,
    }),
    abilities: hostAbilities(config, containers),
    doctor: hostDoctor(config, { log }),
    blobs: hostBlobs(config),
  };
}

/** Docker's containers, each with a disk and processors of its own. */
function containersOf(config: AgentConfig, disks: Disks, log: Log): Containers {
  const engine = dockerContainers({
    socketPath: config.dockerSocket,
    nodeId: config.nodeId,
    runtime: config.ociRuntime,
    seccomp: JSON.stringify(seccompProfile(process.arch)),
    openFiles: openFileLimit(),
    userLimits: userLimits(),
  });
  return withDisks({
    engine: withCpuSets(engine, createCpuSets(allowedCpus())),
    disks,
    repository: `svc/disk-${createHash("sha256").update(config.nodeId).digest("hex").slice(0, 8)}`,
    now: Date.now,
    log,
  });
}
