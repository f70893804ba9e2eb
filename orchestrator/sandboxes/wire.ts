/** Constructs the parts that create, pause, resume, snapshot, fork, expire and kill sandboxes, and their handlers. */

import type { Identity } from "../api/key-cache.ts";
import type { Metrics } from "../api/prometheus.ts";
import type { Base } from "../app-parts.ts";
import type { NetworkLimits } from "../network/options.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Pools } from "../nodes/warm-pools.ts";
import type { Limits } from "../projects/limits.ts";
import type { Refusals } from "../projects/refusals.ts";
import type { RoutingTable } from "../routing-table.ts";
import type { PlaceholderCheck } from "../secrets/placeholder-check.ts";
import type { ProjectQuota } from "../snapshots/quota.ts";
import type { SnapshotRemover } from "../snapshots/removal.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import type { Spawns } from "../templates/usage.ts";
import type { ResolveMounts } from "../volumes/mounts.ts";
import { createSandboxHandlers } from "./handlers.ts";
import { createHistory } from "./history.ts";
import { createLaunch } from "./launch.ts";
import { createAutoResuming } from "./lifecycle/auto-resume.ts";
import { createCheckpointing } from "./lifecycle/checkpoint.ts";
import { createConnecting } from "./lifecycle/connect.ts";
import { createExpiry } from "./lifecycle/expiry.ts";
import { createForking, type ForkingDeps } from "./lifecycle/fork.ts";
import { createHolding } from "./lifecycle/holding.ts";
import { createEnding, type Ending } from "./lifecycle/kill.ts";
import { createPausing } from "./lifecycle/pause.ts";
import { createResuming } from "./lifecycle/resume.ts";
import { createLifetime } from "./lifecycle/timeout.ts";
import { createTransitions } from "./lifecycle/transitions.ts";
import { createNodeData } from "./node-data.ts";
import { createObservationHandlers } from "./observation.ts";
import { createSandboxStateHandlers } from "./state-handlers.ts";

interface StartSandboxesDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: RoutingTable;
  readonly snapshots: SnapshotRemover;
  readonly quota: ProjectQuota | undefined;
  readonly metrics: Metrics;
  readonly identity: Pick<Identity, "owner">;
  readonly placeholders: PlaceholderCheck;
  readonly tokenNames: ForkingDeps["tokenNames"];
  readonly limits: Limits;
  readonly refusals: Refusals;
}

interface SandboxHandlersDeps extends NetworkLimits {
  readonly templates: TemplateNames;
  readonly pools: Pick<Pools, "used">;
  readonly spawns: Pick<Spawns, "count">;
  readonly resolveMounts: ResolveMounts;
  /** Base domain of sandboxes. */
  readonly domain: string;
}

const HOUR_MS = 3_600_000;

export type Sandboxes = ReturnType<typeof startSandboxes>;

export function startSandboxes(base: Base, used: StartSandboxesDeps) {
  const { config, teardown, ...common } = base;
  const { store, nodes, routes, metrics } = used;
  const { now, log } = common;
  const { snapshotTimeoutMs, stopTimeoutMs, patienceMs } = config;
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
      const owner = await used.identity.owner(key);
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

  return {
    history,
    nodeData,
    transitions,
    ending,
    resuming,
    autoResuming,
    pausing,
    checkpointing,
    holding,
    handlers: (served: SandboxHandlersDeps) => ({
      sandboxes: {
        ...createSandboxHandlers({ ...moving, ...served, launch, ending, lifetime, connecting }),
        ...createObservationHandlers({ store, nodes, history, nodeData, log }),
      },
      sandboxStates: createSandboxStateHandlers({ ...moving, ...served, pausing, connecting, forking, ending }),
    }),
  };
}
