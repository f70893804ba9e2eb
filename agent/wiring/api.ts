/** Constructs the metrics, the API and the reports to the orchestrator, over the parts of the other folders. */

import { randomUUID } from "node:crypto";
import { findingText } from "../../shared/program/finding.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { listGarbage } from "../api/garbage.ts";
import { describeHoldings } from "../api/holdings.ts";
import { identify } from "../api/identity.ts";
import { createNodeReport, reportedSnapshots } from "../api/node-report.ts";
import { createInstruments, type Instruments } from "../api/prometheus.ts";
import type { Contact, Report } from "../api/report.ts";
import { type StartApiDeps, startApi } from "../api/start-api.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import type { AgentConfig } from "../config.ts";
import type { EngineWatch } from "../containers/engine-watch.ts";
import type { AgentDeps } from "../deps.ts";
import type { EgressProcess } from "../egress-supervisor/process.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { LimitWatch } from "../host/limit-watch.ts";
import type { Peering } from "../joining/peering.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { Slots } from "../network/slots.ts";
import type { DiskAccount } from "../node-disk/account.ts";
import type { DiskReserve } from "../node-disk/reserve.ts";
import type { Values } from "../placeholders/values.ts";
import type { NodeProxy } from "../proxy/node-proxy.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { MemoryKills } from "../sandboxes/memory-kills.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import { createServing } from "../serving/serving.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";
import type { SnapshotTaker } from "../snapshots/take/snapshot-taker.ts";
import type { Stores } from "../store/stores.ts";
import { createVolumeFiles } from "../volumes/volume-files.ts";
import type { Events } from "./events.ts";

interface ApiParts extends Pick<StartApiDeps, "logs" | "replaceEgress"> {
  readonly peering: Peering;
  readonly stores: Stores;
  readonly events: Events;
  readonly contact: Contact;
  readonly capabilities: CapabilityWatch;
  readonly limits: LimitWatch;
  readonly reach: Reach;
  readonly slots: Slots;
  readonly values: Values;
  readonly egressProcess: EgressProcess;
  readonly engine: EngineWatch;
  readonly proxy: NodeProxy;
  readonly live: LiveSet;
  readonly pool: Pool;
  readonly usage: UsageSampling;
  readonly memoryKills: MemoryKills;
  readonly disposal: Disposal;
  readonly sandboxes: Sandboxes;
  readonly taker: SnapshotTaker;
  readonly stored: SnapshotParts;
  readonly building: BuildParts;
  readonly disk: DiskReserve;
  readonly diskAccount: DiskAccount;
}

export interface ApiOfAgent {
  readonly instruments: Instruments;
  readonly report: Report;
  readonly url: string;
  /** Lets requests in. */
  open(): void;
}

/** The server listens when this resolves, and holds its requests until `open`. */
export async function createApi(
  config: AgentConfig,
  deps: AgentDeps,
  parts: ApiParts,
  teardown: Teardown,
): Promise<ApiOfAgent> {
  const { nodeId } = config;
  const { volumes, log } = deps;
  const { stores, events, contact, live, disk, engine, egressProcess, reach } = parts;
  const { snapshots, holding, admission } = parts.stored;
  const running = () => [...live.running(), ...live.leaving()];
  const volumeFiles = createVolumeFiles({ volumes, program: deps.volumeProgram });
  const instruments = createInstruments({
    nodeId,
    running: () => live.running().length,
    starting: () => live.starting(),
    held: () => live.running().filter(({ executionId }) => disk.isHeld(executionId)).length,
    disks: () => disk.seen(),
    sandboxDisk: () => parts.diskAccount.load(),
    diskWork: deps.diskWork,
    stored: () => admission.used(),
    pools: () => parts.pool.load(),
    slots: () => parts.slots.taken,
    placeholderUses: () => parts.values.results(),
    pendingRemovals: () => parts.disposal.pending,
    memoryKills: () => parts.memoryKills.total,
    hostLimits: () => parts.limits.seen(),
    ways: () => reach.ways(),
    findings: () => [...parts.capabilities.findings(), ...reach.findings()],
    volumes: () => volumes.list(),
    volumeRequests: () => volumeFiles.open,
    orchestratorReached: () => contact.reached,
  });
  events.on("exited", (reason) => instruments.exited(reason));
  const serving = createServing({
    nodeId,
    store: stores.served,
    kept: () => running().length + reportedSnapshots({ snapshots, stores }).length,
    ask: () => void events.emit("changed"),
    log,
  });
  const serviceInstanceId = randomUUID();
  const api = await startApi(
    {
      ...parts,
      identity: { nodeId, serviceInstanceId },
      instruments,
      serving,
      snapshots,
      holding,
      builds: parts.building.builds,
      holdings: () => describeHoldings({ running, stores, serving }),
      config,
      egress: egressProcess,
      samples: stores.samples,
      networkLog: stores.networkLog,
      volumes,
      volumeFiles,
      refusal: () => disk.refusal(),
      listGarbage: () => listGarbage({ ...deps, stores, nodeId, budgetBytes: config.buildCacheMb * 1024 ** 2 }),
      checks: () => ({
        engine: engine.connected ? undefined : "the Docker daemon does not answer",
        "egress process": egressProcess.problem,
        network: reach.findings().map(findingText).join(" | ") || undefined,
        orchestrator: contact.reached ? undefined : (contact.problem ?? "the orchestrator does not answer"),
        "way back": contact.unreached,
        store: serving.refusal,
      }),
      log,
    },
    teardown,
  );
  const identity = identify(config, deps, { serviceInstanceId, apiUrl: api.url, proxyUrl: parts.proxy.url });
  const report = createNodeReport(
    { ...deps, ...parts, config, identity, serving, snapshots, holding, admission },
    teardown,
  );
  events.on("changed", () => report.soon());
  events.on("exited", () => report.exited());
  return { instruments, report, url: api.url, open: () => api.open() };
}
