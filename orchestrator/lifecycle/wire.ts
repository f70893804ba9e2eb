/** Constructs the parts that create, pause, resume, snapshot, fork, expire and kill sandboxes, and change their network. */

import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { PlaceholderCheck } from "../secrets/placeholder-check.ts";
import type { Store } from "../store/store.ts";
import { createExpiry } from "./ending/expiry.ts";
import { createEnding, type Ending } from "./ending/kill.ts";
import { createLifetime } from "./ending/timeout.ts";
import { createHistory } from "./history.ts";
import { createHolding } from "./holding.ts";
import { createNetworkUpdating } from "./network-updating.ts";
import { createNodeData } from "./node-data.ts";
import { createAutoResuming } from "./pausing/auto-resume.ts";
import { createConnecting } from "./pausing/connect.ts";
import { createPausing } from "./pausing/pause.ts";
import { createResuming } from "./pausing/resume.ts";
import { createCheckpointing } from "./snapshots/checkpoint.ts";
import { createForking, type ForkingDeps } from "./snapshots/fork.ts";
import { createSnapshotRemover } from "./snapshots/snapshot-removal.ts";
import { createProjectQuota } from "./snapshots/stored-quota.ts";
import { createLaunch } from "./start/launch.ts";
import { createTransitions } from "./transitions.ts";

interface StartLifecycleDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: RoutingTable;
  readonly metrics: Metrics;
  readonly callers: Callers;
  readonly placeholders: PlaceholderCheck;
  readonly tokenNames: ForkingDeps["tokenNames"];
}

const HOUR_MS = 3_600_000;
const MIB = 1024 ** 2;

export type Lifecycle = ReturnType<typeof startLifecycle>;

export function startLifecycle(base: Base, { callers, ...sources }: StartLifecycleDeps) {
  const { config, teardown, ...common } = base;
  const { store, nodes, routes, metrics } = sources;
  const { background, now, log } = common;
  const { snapshotTimeoutMs, stopTimeoutMs, patienceMs } = config;
  const { identity, limits, refusals } = callers;
  const snapshots = createSnapshotRemover({ nodes, background, log, timeoutMs: stopTimeoutMs });
  const quotaBytes = config.projectStoredQuotaMb * MIB;
  const quota = quotaBytes === 0 ? undefined : createProjectQuota({ storage: store.storage, nodes, log, quotaBytes });
  const used = { ...sources, limits, refusals, snapshots, quota };
  const transitions = createTransitions();
  const history = createHistory({ store, keepMs: config.endedSandboxKeepHours * HOUR_MS, now });
  const nodeData = createNodeData({ nodes, nodeLostMs: config.nodeLostMs, now, log });
  const ending = createEnding({
    ...common,
    ...used,
    transitions,
    stopTimeoutMs,
    snapshotTimeoutMs,
    observe: (reason) => metrics.ended(reason),
  });
  const end = (nodeId: string, executionId: string) => ending.end(nodeId, executionId);
  const lost: Ending["lost"] = (record, detail) => ending.lost(record, detail);
  const expiry = createExpiry({
    store: store.sandboxes,
    now,
    random: common.random,
    log,
    mayChange: (nodeId) => nodes.mayChange(nodeId),
    everyMs: config.expiryEveryMs,
    concurrency: config.expiryConcurrency,
    observe: (seconds) => metrics.expiryLag(seconds),
  });
  teardown.add("expiry", () => expiry.stop());
  const expiresAt = (endAt: number) => expiry.soon(endAt);

  const moving = {
    ...common,
    ...used,
    history,
    transitions,
    patienceMs,
    snapshotTimeoutMs,
    expiresAt,
  };
  const resuming = createResuming({ ...moving, startTimeoutMs: config.resumeTimeoutMs, end, lost });
  const autoResuming = createAutoResuming({
    ...moving,
    resuming,
    limit: config.autoResumeLimit,
    timeoutMs: config.autoResumeTimeoutMs,
    projectOf: async (key) => {
      const owner = await identity.owner(key);
      return typeof owner === "string" ? undefined : owner.project.id;
    },
  });
  const pausing = createPausing({ ...moving, onPaused: () => autoResuming.changed() });
  const checkpointing = createCheckpointing(moving);
  expiry.begin((record) => (record.onTimeout === "pause" ? pausing.expire(record) : ending.expire(record)));

  const launch = createLaunch({
    ...common,
    ...used,
    placement: {
      cpuOvercommit: config.nodeCpuOvercommit,
      memoryOvercommit: config.nodeMemoryOvercommit,
      diskOvercommit: config.nodeDiskOvercommit,
    },
    startTimeoutMs: config.startTimeoutMs,
    placementTimeoutMs: config.placementTimeoutMs,
    end,
    observe: (outcome) => metrics.created(outcome),
  });
  const lifetime = createLifetime({ ...moving, expiry });
  const connecting = createConnecting({ ...moving, lifetime, resuming, waitMs: patienceMs });
  const forking = createForking({ ...moving, launch, checkpointing, concurrency: config.forkConcurrency });
  const holding = createHolding({ store, routes, log });
  const networks = createNetworkUpdating({ ...moving, networkTimeoutMs: config.networkTimeoutMs });
  return {
    snapshots,
    history,
    nodeData,
    launch,
    lifetime,
    connecting,
    forking,
    ending,
    resuming,
    autoResuming,
    pausing,
    checkpointing,
    holding,
    networks,
  };
}
