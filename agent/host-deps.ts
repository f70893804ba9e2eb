/** The agent's access to the real machine: Docker, kernel, network. Tests pass another set. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Log } from "../shared/program/log.ts";
import { probe } from "./api/capabilities.ts";
import { registryLogin } from "./builds/images/registry-login.ts";
import { envdProcesses } from "./builds/steps/processes.ts";
import type { AgentConfig } from "./config.ts";
import { hostAnnotations } from "./containers/annotations.ts";
import { openCgroup } from "./containers/cgroup.ts";
import { dockerContainers } from "./containers/docker.ts";
import { httpEnvd } from "./containers/envd.ts";
import { envdRuntimes } from "./containers/envd-runtime.ts";
import { seccompProfile } from "./containers/seccomp/seccomp.ts";
import type { AgentDeps } from "./deps.ts";
import type { CertificateWithKey } from "./egress/channel/messages.ts";
import { caFor, loadAuthority } from "./egress/rewrite/authority.ts";
import { createEgressProcess } from "./egress-supervisor/process.ts";
import { choosePort, egressCommand, extraCertificates } from "./egress-supervisor/program.ts";
import { runCommand } from "./host/command.ts";
import { readCompanyCertificates } from "./host/company-certificates.ts";
import { proxyVariables, readCompanyProxies } from "./host/company-proxies.ts";
import { allowedCpus } from "./host/cpu-list.ts";
import { diskUsage } from "./host/disk-usage.ts";
import { openFileLimit, userLimits } from "./host/engine-limits.ts";
import { hostMachine } from "./host/machine.ts";
import { nativeProgram } from "./host/native-program.ts";
import { planNetwork } from "./network/addresses.ts";
import { hostFirewall } from "./network/firewall.ts";
import { hostLinks } from "./network/links.ts";
import { hostProbe } from "./network/reach/host-probe.ts";
import { trafficOf } from "./network/traffic.ts";
import { hostBallast } from "./node-disk/ballast.ts";
import { hostGrowth } from "./node-disk/growers.ts";
import { findHole } from "./node-disk/holes.ts";
import { readSpace, reserveOf, tooLarge } from "./node-disk/space.ts";
import { hostDisks } from "./sandbox-disks/disks.ts";
import { ofOwnDisks, withDisks } from "./sandbox-disks/with-disks.ts";
import { createCpuSets } from "./sizes/cpu-sets.ts";
import { hostSizes } from "./sizes/sizes.ts";
import { withCpuSets } from "./sizes/with-cpu-sets.ts";
import { hostConnections } from "./snapshots/connections/connections.ts";
import { probeEnding } from "./snapshots/connections/probe-ending.ts";
import { hostCriu } from "./snapshots/criu/criu.ts";
import { criuFiles, probeMemory } from "./snapshots/criu/probe-memory.ts";
import { snapshotFiles } from "./snapshots/store/files.ts";
import { openNodeSeal } from "./store/seal-key.ts";
import { hostVolumes } from "./volumes/volumes.ts";

const DNS_PORT = 53;
const SIZES_PARTS = ["serve", "files", "container", "rebind"];

/** Variables of the agent's environment that the egress process gets; none holds a secret. */
const EGRESS_ENVIRONMENT = ["PATH", "NODE_OPTIONS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

export function hostDeps(config: AgentConfig, log: Log, environment: NodeJS.ProcessEnv = {}): AgentDeps {
  const plan = planNetwork(config.networkName, config.subnet);
  const disks = hostDisks({
    root: config.disksDir ?? join(config.stateDir, "disks"),
    run: runCommand,
    copier: () => nativeProgram(runCommand, "disks/svc-disk-copy", config.runDir),
    async refusal(bytes) {
      const space = await readSpace(disks.root);
      return tooLarge(space, reserveOf(space, config.diskReserveMb), bytes);
    },
  });
  const engine = dockerContainers({
    socketPath: config.dockerSocket,
    nodeId: config.nodeId,
    runtime: config.ociRuntime,
    seccomp: JSON.stringify(seccompProfile(process.arch)),
    openFiles: openFileLimit(),
    userLimits: userLimits(),
  });
  const cpuSets = createCpuSets(allowedCpus());
  const containers = withDisks({
    engine: withCpuSets(engine, cpuSets),
    disks,
    repository: `svc/disk-${createHash("sha256").update(config.nodeId).digest("hex").slice(0, 8)}`,
    now: Date.now,
    log,
  });
  const growth = hostGrowth(runCommand);
  const keyFile = config.sealKeyFile ?? join(config.stateDir, "seal.key");
  const chosen = { port: undefined as Promise<number> | undefined };
  const loaded = { authority: undefined as Promise<CertificateWithKey> | undefined };
  // Always the same object, because leases are kept by its identity.
  const authority = () => (loaded.authority ??= loadAuthority(config.stateDir, Date.now()));
  const company = config.sandboxCaFile === undefined ? "" : readCompanyCertificates(config.sandboxCaFile);
  const companyProxies = readCompanyProxies(config);
  const egressPort = () => (chosen.port ??= choosePort(config.egressPort, join(config.stateDir, "egress-port")));
  const links = hostLinks(plan, runCommand);
  const firewall = hostFirewall(plan, runCommand, {
    egressPort,
    connections: config.egressConnections,
    proxy: companyProxies !== undefined,
    watcher: () => nativeProgram(runCommand, "network/svc-table-watch", config.runDir),
  });
  const address = config.networkProbeAddress;
  const sender = once(() => nativeProgram(runCommand, "network/svc-network-probe", config.runDir));
  return {
    log,
    plan,
    containers,
    openCgroup,
    links,
    firewall,
    reachProbe: address === "" ? undefined : hostProbe(plan, runCommand, { links, firewall }, { address, sender }),
    annotations: hostAnnotations(config.runDir),
    envd: httpEnvd(),
    processes: envdProcesses(),
    login: registryLogin({ now: Date.now }),
    runtime: envdRuntimes(config.envdRuntime),
    machine: hostMachine([config.stateDir, "/var/lib/docker"]),
    diskWork: () => disks.work(),
    volumes: hostVolumes({ root: join(disks.root, "volumes"), run: runCommand }),
    volumeProgram: () => nativeProgram(runCommand, "volumes/svc-volume-files", config.runDir),
    diskUsage: ofOwnDisks(disks, ({ usedBytes }) => usedBytes, diskUsage(runCommand)),
    traffic: trafficOf,
    findHole,
    readSpace,
    keepBallast: hostBallast(config.stateDir, runCommand, readSpace),
    growth: {
      ...growth,
      countFiles: ofOwnDisks(disks, ({ usedInodes }) => usedInodes, growth.countFiles),
    },
    files: snapshotFiles(join(config.stateDir, "snapshots")),
    criu: hostCriu(runCommand),
    connections: hostConnections(plan, runCommand),
    sizes: hostSizes({
      run: runCommand,
      place: join(config.runDir, "sizes"),
      program: () => nativeProgram(runCommand, "sizes/program/svc-sizes", config.runDir, SIZES_PARTS),
      log,
    }),
    probe: (sizes) =>
      probe(containers, {
        memory: (runc) => probeMemory(runCommand, runc, join(config.stateDir, "memory-probe.json")),
        ending: () => probeEnding(runCommand),
        sizes,
      }),
    criuFiles: () => criuFiles(),
    egress: (onDecisions, placeholders) =>
      createEgressProcess(
        {
          command: async () =>
            egressCommand(runCommand, config.runDir, {
              gateway: plan.gateway,
              port: await egressPort(),
              dnsPort: DNS_PORT,
              ...(config.egressUid === undefined ? {} : { user: config.egressUid }),
            }),
          environment: {
            ...Object.fromEntries(
              EGRESS_ENVIRONMENT.map((name) => [name, environment[name] ?? ""]).filter(([, value]) => value !== ""),
            ),
            SVC_LOG_LEVEL: config.logLevel,
          },
          gateway: plan.gateway,
          dnsUpstream: config.dnsUpstream,
          connectionsPerSandbox: config.egressConnections,
          proxyAllowedRanges: config.egressProxyAllow
            .split(",")
            .map((text) => text.trim())
            .filter(Boolean),
          ...(companyProxies === undefined ? {} : { companyProxies }),
          authority,
          extraCertificates: async () => (await extraCertificates(environment["NODE_EXTRA_CA_CERTS"], log)) + company,
          placeholders,
          log,
        },
        onDecisions,
      ),
    networkVariables: async () => proxyVariables(companyProxies, config, `${plan.gateway}:${await egressPort()}`),
    caFor: async (policy) => company + (policy.rules.length === 0 ? "" : caFor(policy, await authority())),
    lockPath: join(config.stateDir, "agent.lock"),
    databasePath: join(config.stateDir, "agent.db"),
    sealing: () => openNodeSeal(keyFile),
    now: Date.now,
  };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () =>
    (done ??= work().catch((error: unknown) => {
      done = undefined;
      throw error;
    }));
}
