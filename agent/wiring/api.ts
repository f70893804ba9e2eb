/** Constructs the metrics, the API and the reports to the orchestrator, over the parts of the other folders. */

import { randomUUID } from "node:crypto";
import { factsOf } from "../../shared/tls/credentials.ts";
import { checksOf } from "../api/checks.ts";
import { listGarbage } from "../api/garbage.ts";
import { describeHoldings } from "../api/holdings.ts";
import { identify } from "../api/identity.ts";
import { createNodeReport, reportedSnapshots } from "../api/node-report.ts";
import { createInstruments } from "../api/prometheus.ts";
import { startApi } from "../api/start-api.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import type { EngineWatch } from "../containers/engine-watch.ts";
import type { Lease } from "../lease/lease.ts";
import type { DiskAccount } from "../node-disk/account.ts";
import type { NodeProxy } from "../proxy/node-proxy.ts";
import { createServing } from "../serving/serving.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";
import { fetchedDisks } from "../snapshots/store/snapshots.ts";
import type { Base } from "./base.ts";
import type { BlobParts } from "./blobs.ts";
import type { NetworkParts } from "./network.ts";
import type { NodeParts } from "./node.ts";
import type { LiveParts, SandboxParts } from "./sandboxes.ts";
import type { TakerParts } from "./snapshots.ts";

interface ApiSources {
  readonly network: NetworkParts;
  readonly node: NodeParts;
  readonly blobs: BlobParts;
  readonly live: LiveParts;
  readonly lease: Lease;
  readonly stored: SnapshotParts;
  readonly own: SandboxParts;
  readonly taking: TakerParts;
  readonly building: BuildParts;
  readonly proxy: NodeProxy;
  readonly engine: EngineWatch;
  readonly diskAccount: DiskAccount;
}

/** The server listens when this resolves, and holds its requests until it is started. */
export async function createApi(base: Base, parts: ApiSources) {
  const { config, machine, peering, orchestrators, stores, events, now, log, teardown } = base;
  const { nodeId } = config;
  const { host, disks, volumes, volumeFiles, doctor } = machine;
  const { network, node, blobs, live, lease, stored, own, taking, building, diskAccount } = parts;
  const { egressProcess, reach } = network;
  const { capabilities, disk } = node;
  const { contact, taker } = taking;
  const {
    snapshots,
    uploads,
    imageUploads,
    heldImages,
    arrivals,
    imageArrivals,
    offers,
    snapshotChecks,
    holding,
    admission,
  } = stored;
  const { member } = peering;
  const running = () => [...live.set.running(), ...live.set.leaving()];
  const findings = () => [...capabilities.findings(), ...reach.findings(), ...blobs.store.findings()];
  const instruments = createInstruments({
    nodeId,
    running: () => live.set.running().length,
    starting: live.set.starting,
    held: () => live.set.running().filter(({ executionId }) => disk.isHeld(executionId)).length,
    withoutLease: () => live.set.running().filter(({ executionId }) => lease.isFrozen(executionId)).length,
    disks: () => disk.seen(),
    sandboxDisk: () => diskAccount.load(),
    diskWork: disks.work,
    stored: () => admission.used(),
    fetchedDisks: () => fetchedDisks(stores.snapshots.all()),
    blobTraffic: () => machine.blobs.traffic.read(),
    uploads: () => ({ snapshots: uploads.queue(), images: imageUploads.queue() }),
    certificateUntil: member && (() => factsOf(member.credentials.current.certificate).until),
    pools: () => own.pool.load(),
    poolAccount: () => own.pool.account(),
    slots: () => network.slots.taken,
    placeholderUses: () => network.values.results(),
    pendingRemovals: () => live.disposal.pending,
    memoryKills: () => live.memoryKills.total,
    egress: () => stores.networkLog.totals(),
    hostLimits: () => node.limits.seen(),
    ways: () => reach.ways(),
    findings,
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
  const garbage = {
    containers: machine.docker.containers,
    files: machine.memory.files,
    stores,
    nodeId,
    budgetBytes: config.buildCacheMb * 1024 ** 2,
    now,
  };
  const checked = { engine: parts.engine, egressProcess, reach, contact, serving, lease };
  const serviceInstanceId = randomUUID();
  const api = await startApi(
    {
      config,
      peering,
      identity: { nodeId, serviceInstanceId },
      instruments,
      serving,
      taker,
      snapshots,
      arrivals,
      imageArrivals,
      offers,
      snapshotChecks,
      collecting: blobs.collecting,
      holding,
      sandboxes: own.sandboxes,
      logs: own.logs,
      replaceEgress: own.replaceEgress,
      usage: live.usage,
      reach,
      egress: egressProcess,
      builds: building.builds,
      samples: stores.samples,
      networkLog: stores.networkLog,
      volumes,
      volumeFiles,
      refusal: () => disk.refusal(),
      holdings: () => describeHoldings({ running, stores, serving }),
      listGarbage: () => listGarbage(garbage),
      doctor,
      checks: () => checksOf(checked),
      lastReport: () => contact.last,
      log,
    },
    teardown,
  );
  const report = createNodeReport(
    {
      config,
      identity: identify(config, host, { serviceInstanceId, apiUrl: api.url, proxyUrl: parts.proxy.url }),
      peering,
      orchestrators,
      host,
      contact,
      capabilities,
      reach,
      hasBlobStore: blobs.store.name !== undefined,
      blobs: machine.blobs,
      findings,
      live: live.set,
      sandboxes: own.sandboxes,
      pool: own.pool,
      snapshots,
      uploads,
      imageUploads,
      heldImages,
      holding,
      taker,
      serving,
      lease,
      admission,
      disk,
      diskAccount,
      usage: live.usage,
      stores,
      now,
      log,
    },
    teardown,
  );
  events.on("changed", () => report.soon());
  events.on("exited", () => report.exited());
  return { instruments, report, url: api.url, start: () => api.start() };
}
