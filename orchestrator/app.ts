/** Wires the orchestrator: calls each folder's constructor in the order of their needs, and stops the parts in reverse. */

import { nodeToken } from "../shared/agent-api/node-tokens.ts";
import { addressList } from "../shared/http/client-address.ts";
import { connectionLimits } from "../shared/http/connection-limits.ts";
import { roomFor } from "../shared/program/descriptors.ts";
import { createSeal } from "../shared/program/seal.ts";
import { Teardown } from "../shared/program/teardown.ts";
import { ENVD_VERSION } from "../shared/version.ts";
import { createApi } from "./api/wire.ts";
import type { Base, OrchestratorDeps } from "./app-parts.ts";
import { createBackground } from "./background.ts";
import { startBuilds } from "./builds/wire.ts";
import type { OrchestratorConfig } from "./config.ts";
import { type Edge, startEdge } from "./edge/edge.ts";
import { createNetwork } from "./network/wire.ts";
import { startNodes } from "./nodes/wire.ts";
import { createRoutingTable, type RoutingTable } from "./routing-table.ts";
import { type Sandboxes, startSandboxes } from "./sandboxes/wire.ts";
import { createSnapshots } from "./snapshots/wire.ts";
import { openStore } from "./store/wire.ts";
import { startTemplates } from "./templates/wire.ts";

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
  const background = createBackground(log);
  const base: Base = { ...deps, config, sealing, background, teardown };

  const baseTemplate = {
    image: config.baseImage,
    cpuCount: config.baseCpuCount,
    memoryMB: config.baseMemoryMb,
    diskSizeMB: config.baseDiskMb,
    envdVersion: ENVD_VERSION,
  };
  const place = config.databaseUrl ?? config.database;
  const { store, template, schema, ping } = await openStore({ place, baseTemplate, sealing, now }, teardown);
  const tokenTo = (nodeId: string) => nodeToken(config.nodeKey, nodeId, "to node");
  const { nodes, pools, finishAbandonedWork, startRepairs } = await startNodes(base, {
    store,
    template,
    nodeToken: tokenTo,
  });
  teardown.add("background work", () => background.settled());
  const api = createApi(base, { store, nodes });
  const { metrics, identity } = api;
  const routes = createRoutingTable({ seed: config.seed, place: (id) => nodes.place(id) });
  for (const record of await store.sandboxes.routable()) routes.add(record);

  const snapshots = createSnapshots(base, { store, nodes });
  const { remover, quota } = snapshots;
  const sandboxes = startSandboxes(base, { store, nodes, routes, snapshots: remover, quota, metrics, identity });
  const { checkpointing, ending, transitions, autoResuming, history, nodeData } = sandboxes;
  snapshots.startExpiry(ending);
  const network = createNetwork(base, { store, nodes, transitions, history, nodeData });
  const repaired = { sandboxes, networks: network.updating };
  await finishAbandonedWork(repaired);
  const edge = await openEdge(base, { routes, autoResuming, nodeToken: tokenTo });

  const templates = startTemplates(base, store);
  const { names, spawns } = templates;
  const reports = startRepairs({ ...repaired, routes, spawns, metrics });
  const builds = await startBuilds(base, { store, nodes, pools, names, metrics });
  const { queue, cleaning, archives, files } = builds;
  const domain = config.domain ?? `localhost:${new URL(edge.url).port}`;
  const url = await api.start({
    schema,
    ping,
    ending,
    builds: queue,
    cleaning,
    pools,
    files,
    handlers: {
      ...sandboxes.handlers({ templates: names, pools, spawns, proxyRanges: network.proxyRanges, domain }),
      ...templates.handlers({ checkpointing, snapshots: remover, pools, archives, builds: queue }),
      sandboxNetworks: network.handlers,
      snapshots: snapshots.handlers({ store, names, checkpointing }),
      storage: snapshots.storage,
      builds: builds.handlers,
      reports,
    },
  });
  log.info({ url, edgeUrl: edge.url, schema, routes: routes.size }, "orchestrator started");
  return { url, edgeUrl: edge.url, stop: () => teardown.run() };
}

interface EdgeParts {
  readonly routes: RoutingTable;
  readonly autoResuming: Sandboxes["autoResuming"];
  readonly nodeToken: (nodeId: string) => string;
}

/** Opens the edge, which imports nothing of the orchestrator: this function reads the settings for it. */
async function openEdge(base: Base, { routes, autoResuming, nodeToken: tokenTo }: EdgeParts): Promise<Edge> {
  const { config, teardown } = base;
  const log = base.log.child({ part: "edge" });
  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  // Port 0 means that no port is chosen yet: the edge's page then has no link to the API.
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
      log,
      connections: connectionLimits({
        ...roomFor(EDGE_SHARE, { total: config.edgeConnections, perAddress: config.edgeConnectionsPerAddress }),
        name: "edge",
        isShared: isProxy,
        log,
      }),
      isProxy,
      routes,
      autoResume: autoResuming.autoResume,
      pausedSandboxes: () => autoResuming.pausedSandboxes(),
    },
  );
  teardown.add("edge", () => edge.stop());
  return edge;
}
