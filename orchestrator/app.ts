/** Wires the orchestrator: constructs its parts, starts both servers, stops them in order. */

import { nodeToken } from "../shared/agent-api/node-tokens.ts";
import { addressList } from "../shared/http/client-address.ts";
import { connectionLimits } from "../shared/http/connection-limits.ts";
import { roomFor } from "../shared/program/descriptors.ts";
import { createSeal } from "../shared/program/seal.ts";
import { Teardown } from "../shared/program/teardown.ts";
import { ENVD_VERSION } from "../shared/version.ts";
import { createMetrics } from "./api/prometheus.ts";
import { serveApi } from "./app-api.ts";
import type { Limits, OrchestratorDeps } from "./app-parts.ts";
import { createBackground } from "./background.ts";
import type { OrchestratorConfig } from "./config.ts";
import { startEdge } from "./edge/edge.ts";
import { finishAbandoned } from "./nodes/housekeeping.ts";
import { openNodes } from "./nodes/nodes.ts";
import { createRoutes } from "./routing-table.ts";
import { createExpiry } from "./sandboxes/lifecycle/expiry.ts";
import { createEnding } from "./sandboxes/lifecycle/kill.ts";
import { createTransitions } from "./sandboxes/lifecycle/transitions.ts";
import { createSleep } from "./sandboxes/lifecycle/wire.ts";
import { createSnapshotRemover } from "./snapshots/removal.ts";
import { openDatabase } from "./store/database.ts";
import { createStore } from "./store/store.ts";

/** The edge's share of the descriptors: each client connection needs a second one to a node; the API has an eighth. */
const EDGE_SHARE = 3 / 8;

export interface Orchestrator {
  readonly url: string;
  readonly edgeUrl: string;
  stop(): Promise<void>;
}

/** Resolves when both servers listen and the routing table holds every running sandbox. */
export async function startOrchestrator(config: OrchestratorConfig, deps: OrchestratorDeps): Promise<Orchestrator> {
  const teardown = new Teardown(deps.log);
  try {
    return await start(config, deps, teardown);
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

async function start(config: OrchestratorConfig, deps: OrchestratorDeps, teardown: Teardown): Promise<Orchestrator> {
  const { log, now } = deps;
  const sealing = createSeal(config.encryptionKey, "SVC_ENCRYPTION_KEY");
  const opened = await openDatabase(config.databaseUrl ?? config.database, sealing);
  teardown.add("database", () => opened.close());
  const store = createStore(opened.database, now, sealing);
  const base = await store.templates.seed("base", {
    image: config.baseImage,
    cpuCount: config.baseCpuCount,
    memoryMB: config.baseMemoryMb,
    diskSizeMB: config.baseDiskMb,
    envdVersion: ENVD_VERSION,
  });
  const tokenTo = (nodeId: string) => nodeToken(config.nodeKey, nodeId, "to node");
  const nodes = await openNodes({
    store: store.nodes,
    now,
    log,
    nodeToken: tokenTo,
    nodeTimeoutMs: config.nodeTimeoutMs,
    machineId: deps.machineId,
  });
  teardown.add("node connections", () => nodes.stop());
  const background = createBackground(log);
  teardown.add("background work", () => background.settled());

  const metrics = createMetrics({
    sandboxesByState: () => store.sandboxes.countByState(),
    buildsByStatus: () => store.builds.countByStatus(),
    nodes: () => nodes.list(),
    now,
  });
  const routes = createRoutes({ seed: config.seed, place: (id) => nodes.place(id) });
  for (const record of await store.sandboxes.routable()) routes.add(record);

  const transitions = createTransitions();
  const { stopTimeoutMs, captureTimeoutMs } = config;
  const snapshots = createSnapshotRemover({ nodes, background, log, timeoutMs: stopTimeoutMs });
  const ending = createEnding({
    store,
    nodes,
    routes,
    transitions,
    now,
    log,
    snapshots,
    stopTimeoutMs,
    captureTimeoutMs,
    observe: (reason) => metrics.ended(reason),
  });
  const limits: Limits = {
    maxHours: (project) => project.maxSandboxHours ?? config.maxSandboxHours,
    maxSandboxes: (project) => project.maxSandboxes ?? config.maxProjectSandboxes,
  };
  const expiry = createExpiry({
    store: store.sandboxes,
    now,
    log,
    everyMs: config.expiryEveryMs,
    concurrency: config.expiryConcurrency,
    observe: (seconds) => metrics.expiryLag(seconds),
  });
  teardown.add("expiry", () => expiry.stop());
  const sleep = createSleep({
    config,
    store,
    nodes,
    routes,
    transitions,
    background,
    snapshots,
    sealing,
    ending,
    now,
    log,
    ...limits,
    random: deps.random,
    expiresAt: (endAt) => expiry.soon(endAt),
  });
  expiry.begin((record) => (record.onTimeout === "pause" ? sleep.pausing.expire(record) : ending.expire(record)));
  // One process owns the database: work that was under way when it opened has been abandoned.
  await store.sandboxes.abandonAll();
  background.run("finish abandoned transitions", async () => {
    await finishAbandoned({ store, nodes, ending, ...sleep, now, log });
    await sleep.capturing.sweep(now());
  });

  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const edgeLog = log.child({ part: "edge" });
  // A port that is not chosen yet is left out: the page then has no link.
  const ownUrl = config.apiPort === 0 ? undefined : `http://localhost:${config.apiPort}`;
  const apiUrl = config.publicUrl ?? ownUrl;
  const documentation = apiUrl === undefined ? undefined : `${apiUrl.replace(/\/+$/, "")}/docs`;
  const edge = await startEdge(
    {
      host: config.edgeHost,
      port: config.edgePort,
      ...(documentation === undefined ? {} : { docsUrl: documentation }),
      nodeToken: tokenTo,
      maxConnectionsPerSandbox: config.edgeConnectionLimit,
    },
    {
      log: edgeLog,
      connections: connectionLimits({
        ...roomFor(EDGE_SHARE, { total: config.edgeConnections, perAddress: config.edgeConnectionsPerAddress }),
        name: "edge",
        isShared: isProxy,
        log: edgeLog,
      }),
      isProxy,
      routes,
      wake: sleep.waking.wake,
      pausedSandboxes: () => sleep.waking.pausedSandboxes(),
    },
  );
  teardown.add("edge", () => edge.stop());

  const url = await serveApi(
    {
      config,
      deps,
      store,
      nodes,
      routes,
      ending,
      transitions,
      background,
      base,
      metrics,
      edge,
      expiry,
      limits,
      sealing,
      sleep,
      snapshots,
    },
    {
      opened,
      teardown,
    },
  );
  log.info({ url, edgeUrl: edge.url, schema: opened.schema, routes: routes.size }, "orchestrator started");
  return { url, edgeUrl: edge.url, stop: () => teardown.run() };
}
