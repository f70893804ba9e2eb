/** Constructs the parts that create, pause, resume, snapshot, fork, expire and kill sandboxes, and change their network. */

import type { EndReason } from "../../shared/states/end-reason.ts";
import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { placementPolicy } from "../nodes/placement.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { PlaceholderCheck } from "../secrets/placeholder-check.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import type { Core } from "./core.ts";
import { createDeadlines } from "./ending/deadlines.ts";
import { startExpiry } from "./ending/expiry.ts";
import { createEnding } from "./ending/kill.ts";
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
import { createForking } from "./snapshots/fork.ts";
import { createSnapshotRemover } from "./snapshots/snapshot-removal.ts";
import { createProjectQuota } from "./snapshots/stored-quota.ts";
import { createLaunch } from "./start/launch.ts";
import { createTransitions } from "./transitions.ts";

interface LifecycleDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: RoutingTable;
  readonly metrics: Metrics;
  readonly callers: Callers;
  readonly placeholders: PlaceholderCheck;
  readonly tokenNames: (record: SandboxRecord) => ReadonlySet<string>;
}

const HOUR_MS = 3_600_000;
const MIB = 1024 ** 2;

export type Lifecycle = ReturnType<typeof startLifecycle>;

export function startLifecycle(base: Base, deps: LifecycleDeps) {
  const { config, background, now, random, log, sealing, seeds } = base;
  const { store, nodes, routes, metrics, placeholders, tokenNames } = deps;
  const { limits, refusals, identity } = deps.callers;
  const { snapshotTimeoutMs, stopTimeoutMs, patienceMs } = config;

  const snapshots = createSnapshotRemover({ nodes, background, log, timeoutMs: stopTimeoutMs });
  const transitions = createTransitions(store.operations);
  const core: Core = { store, nodes, routes, transitions, snapshots, background, now, random, log };
  const quotaBytes = config.projectStoredQuotaMb * MIB;
  const quota = quotaBytes === 0 ? undefined : createProjectQuota({ storage: store.storage, nodes, log, quotaBytes });
  const history = createHistory({ store, keepMs: config.endedSandboxKeepHours * HOUR_MS, now });
  const nodeData = createNodeData({ nodes, nodeLostMs: config.nodeLostMs, now, log });
  const deadlines = createDeadlines(now);
  const observe = (reason: EndReason) => metrics.ended(reason);
  const ending = createEnding({ core, stopTimeoutMs, snapshotTimeoutMs, observe });
  const resuming = createResuming({
    core,
    history,
    ending,
    deadlines,
    refusals,
    sealing,
    seeds,
    startTimeoutMs: config.resumeTimeoutMs,
    patienceMs,
  });
  const autoResuming = createAutoResuming({
    core,
    resuming,
    limits,
    seeds,
    limit: config.autoResumeLimit,
    timeoutMs: config.autoResumeTimeoutMs,
    projectOf: async (key) => {
      const owner = await identity.owner(key);
      return typeof owner === "string" ? undefined : owner.project.id;
    },
  });
  const onPaused = () => autoResuming.changed();
  const pausing = createPausing({ core, history, quota, snapshotTimeoutMs, patienceMs, onPaused });
  const checkpointing = createCheckpointing({
    core,
    history,
    deadlines,
    quota,
    limits,
    refusals,
    snapshotTimeoutMs,
    patienceMs,
  });
  const launch = createLaunch({
    core,
    ending,
    refusals,
    placement: placementPolicy(config),
    startTimeoutMs: config.startTimeoutMs,
    placementTimeoutMs: config.placementTimeoutMs,
    observe: (outcome) => metrics.created(outcome),
  });
  const lifetime = createLifetime({ core, history, deadlines, limits });
  const connecting = createConnecting({ core, history, lifetime, resuming, limits, waitMs: patienceMs });
  const forking = createForking({
    core,
    checkpointing,
    launch,
    sealing,
    seeds,
    limits,
    placeholders,
    tokenNames,
    concurrency: config.forkConcurrency,
  });
  const holding = createHolding({ store, routes, log });
  const { networkTimeoutMs } = config;
  const networks = createNetworkUpdating({
    core,
    history,
    sealing,
    placeholders,
    tokenNames,
    networkTimeoutMs,
    patienceMs,
  });
  const expiry = startExpiry({
    store,
    deadlines,
    now,
    random,
    log,
    expire: (record) => (record.onTimeout === "pause" ? pausing.expire(record) : ending.expire(record)),
    mayChange: (nodeId) => nodes.mayChange(nodeId),
    everyMs: config.expiryEveryMs,
    concurrency: config.expiryConcurrency,
    observe: (seconds) => metrics.expiryLag(seconds),
  });
  base.teardown.add("expiry", () => expiry.stop());
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
