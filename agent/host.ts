/** What the agent uses of the real machine: engine, kernel, network. Tests pass in another set. */

import { join } from "node:path";
import type { Log } from "../shared/log.ts";
import type { AgentDeps } from "./app.ts";
import { envdProcesses } from "./builds/processes.ts";
import { registryLogin } from "./builds/registry-login.ts";
import { openFileLimit, probe } from "./capabilities.ts";
import { openCgroup } from "./cgroup.ts";
import { runCommand } from "./command.ts";
import type { AgentConfig } from "./config.ts";
import { diskUsage } from "./disk-usage.ts";
import { dockerContainers } from "./docker.ts";
import { httpEnvd } from "./envd.ts";
import { envdRuntimes } from "./envd-runtime.ts";
import { hostMachine } from "./machine.ts";
import { hostMarks } from "./marks.ts";
import { planNetwork } from "./network/addresses.ts";
import { startDns } from "./network/dns.ts";
import { upstreams } from "./network/dns-upstreams.ts";
import { hostFirewall } from "./network/firewall.ts";
import { hostLinks } from "./network/links.ts";
import { seccompProfile } from "./seccomp.ts";
import { hostCriu } from "./snapshots/criu.ts";
import { snapshotFiles } from "./snapshots/files.ts";
import { probeMemory } from "./snapshots/probe-memory.ts";

const DNS_PORT = 53;

export function hostDeps(config: AgentConfig, log: Log): AgentDeps {
  const plan = planNetwork(config.networkName, config.subnet);
  const containers = dockerContainers({
    socketPath: config.dockerSocket,
    nodeId: config.nodeId,
    runtime: config.ociRuntime,
    seccomp: JSON.stringify(seccompProfile(process.arch)),
    openFiles: openFileLimit(),
  });
  return {
    log,
    plan,
    containers,
    openCgroup,
    links: hostLinks(plan, runCommand),
    firewall: hostFirewall(plan, runCommand),
    marks: hostMarks(config.runDir),
    envd: httpEnvd(),
    processes: envdProcesses(),
    login: registryLogin({ now: Date.now }),
    runtime: envdRuntimes(config.envdRuntime),
    machine: hostMachine([config.stateDir, "/var/lib/docker"]),
    diskUsage: diskUsage(runCommand),
    files: snapshotFiles(join(config.stateDir, "snapshots")),
    criu: hostCriu(runCommand),
    probe: () => probe(containers, (runc) => probeMemory(runCommand, runc, join(config.stateDir, "memory-probe.json"))),
    startDns: () => startDns({ address: plan.gateway, port: DNS_PORT, upstreams: upstreams(config.dnsUpstream), log }),
    lockPath: join(config.stateDir, "agent.lock"),
    databasePath: join(config.stateDir, "agent.db"),
    now: Date.now,
  };
}
