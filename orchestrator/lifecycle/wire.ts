/** Constructs the parts that create, pause, resume, snapshot, fork, expire and kill sandboxes, and change their network. */

import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { placementPolicy } from "../nodes/placement/candidate.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { StartTurns } from "../nodes/start-turns.ts";
import type { PlaceholderCheck } from "../secrets/placeholder-check.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import type { Core } from "./core.ts";
import { createDeadlines } from "./ending/deadlines.ts";
import { startExpiry } from "./ending/expiry.ts";
import { createEnding } from "./ending/kill.ts";
import { createNodeLoss } from "./ending/node-loss.ts";
import { createLifetime } from "./ending/timeout.ts";
import { createHistory } from "./history.ts";
import { createHolding } from "./holding.ts";
import { createNodeData } from "./node-data.ts";
import { createAutoResuming } from "./pausing/auto-resume.ts";
import { createConnecting } from "./pausing/connect.ts";
import { createPausing } from "./pausing/pause.ts";
import { createResuming } from "./pausing/resume.ts";
import { createNetworkUpdating } from "./replace-policy.ts";
import { createRewinding } from "./rewinding/rewind.ts";
import { createCheckpointing } from "./snapshots/checkpoint.ts";
import { createForking } from "./snapshots/fork.ts";
import { createSnapshotRemover } from "./snapshots/snapshot-removal.ts";
import { createProjectQuota } from "./snapshots/stored-quota.ts";
import { createElsewhere } from "./start/elsewhere.ts";
import { createExplain } from "./start/explain.ts";
import { createImages } from "./start/images.ts";
import { createLaunch } from "./start/launch.ts";
import { createTransitions } from "./transitions.ts";

interface LifecycleDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly turns: StartTurns;
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
  const { config, background, alone, clock, now, random, log, sealing, seeds, teardown } = base;
  const { store, nodes, turns, routes, metrics, placeholders, tokenNames } = deps;
  const { limits, refusals, identity } = deps.callers;

  const snapshots = createSnapshotRemover({
    nodes,
    background,
    neededOn: (nodeId) => store.pausedSandboxes.snapshotsOn(nodeId),
    log,
    timeoutMs: config.stopTimeoutMs,
  });
  const history = createHistory({ store, keepMs: config.endedSandboxKeepHours * HOUR_MS, now });
  const core: Core = {
    store,
    nodes,
    turns,
    routes,
    transitions: createTransitions(store.operations),
    snapshots,
    history,
    deadlines: createDeadlines(now),
    limits,
    refusals,
    sealing,
    seeds,
    timeouts: config,
    background,
    now,
    random,
    log,
  };
  const quotaBytes = config.projectStoredQuotaMb * MIB;
  const quota = quotaBytes === 0 ? undefined : createProjectQuota({ storage: store.storage, nodes, log, quotaBytes });
  const ending = createEnding({ core, observe: (reason) => metrics.ended(reason) });
  const placement = placementPolicy(config);
  const elsewhere = createElsewhere({ core, placement });
  const resuming = createResuming({
    core,
    ending,
    elsewhere,
    observe: (outcome) => metrics.changed("resume", outcome),
    onParts: (parts) => metrics.phases("resume", parts),
  });
  const autoResuming = createAutoResuming({
    core,
    resuming,
    limit: config.autoResumeLimit,
    projectOf: async (key) => {
      const owner = await identity.owner(key);
      return typeof owner === "string" ? undefined : owner.project.id;
    },
  });
  const pausing = createPausing({
    core,
    quota,
    onPaused: () => autoResuming.changed(),
    observe: (outcome) => metrics.changed("pause", outcome),
    onParts: (parts) => metrics.phases("pause", parts),
  });
  const checkpointing = createCheckpointing({ core, quota, onFailed: (code) => metrics.snapshotFailed(code) });
  const images = createImages(core);
  const launch = createLaunch({
    core,
    ending,
    elsewhere,
    images,
    placement,
    observe: (outcome) => metrics.created(outcome),
  });
  const lifetime = createLifetime(core);
  const concurrency = config.forkConcurrency;
  const expiry = startExpiry({
    core,
    expire: (record) => (record.onTimeout === "pause" ? pausing.expire(record) : ending.expire(record)),
    everyMs: config.expiryEveryMs,
    concurrency: config.expiryConcurrency,
    observe: (seconds) => metrics.expiryLag(seconds),
    // Where several processes use the database, its clock counts.
    ...(alone ? { clock } : {}),
  });
  teardown.add("expiry", () => expiry.stop());
  return {
    snapshots,
    history,
    nodeData: createNodeData({ nodes, nodeLostMs: config.nodeLostMs, now, log }),
    launch,
    explain: createExplain({ core, images, placement }),
    elsewhere,
    images,
    lifetime,
    connecting: createConnecting({ core, lifetime, resuming }),
    forking: createForking({
      core,
      checkpointing,
      launch,
      placeholders,
      tokenNames,
      concurrency,
      observe: (outcome) => metrics.changed("fork", outcome),
    }),
    ending,
    nodeLoss: createNodeLoss({ core, ending }),
    resuming,
    rewinding: createRewinding({ core, ending, elsewhere, observe: (outcome) => metrics.changed("rewind", outcome) }),
    autoResuming,
    pausing,
    checkpointing,
    holding: createHolding({ store, routes, log }),
    networks: createNetworkUpdating({ core, placeholders, tokenNames }),
  };
}
