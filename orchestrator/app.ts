/** Wires the orchestrator: calls each folder's constructor in the order of their needs, and stops the parts in reverse. */

import { defined } from "../shared/defined.ts";
import { addressList } from "../shared/http/client-address.ts";
import { connectionLimits } from "../shared/http/connection-limits.ts";
import { roomFor } from "../shared/program/descriptors.ts";
import { Teardown } from "../shared/program/teardown.ts";
import { ENVD_VERSION } from "../shared/version.ts";
import { createCallers } from "./access/wire.ts";
import { startApi } from "./api/wire.ts";
import { startAudit } from "./audit/wire.ts";
import { createBackground } from "./base/background.ts";
import type { Base, OrchestratorDeps } from "./base/base.ts";
import { readKeyring } from "./base/keyring.ts";
import { startBuilds } from "./builds/wire.ts";
import type { OrchestratorConfig } from "./config.ts";
import { type Edge, startEdge } from "./edge/edge.ts";
import type { EdgeRoutingTable } from "./edge/sandbox-lookup.ts";
import { createEvents } from "./events/wire.ts";
import { startWorkloadIdentity } from "./identity/wire.ts";
import { type Lifecycle, startLifecycle } from "./lifecycle/wire.ts";
import { createPlatformMetrics } from "./metrics/wire.ts";
import { startNodes } from "./nodes/wire.ts";
import { startProjects } from "./projects/wire.ts";
import { finishAbandonedWork, startRepairs } from "./repairs/wire.ts";
import { startRotation } from "./rotation/wire.ts";
import { createSandboxes } from "./sandboxes/wire.ts";
import { openSecrets } from "./secrets/wire.ts";
import { startSnapshots } from "./snapshots/wire.ts";
import { openStore } from "./store/wire.ts";
import { startTemplates } from "./templates/wire.ts";
import { startUsage } from "./usage/wire.ts";
import { startVolumes } from "./volumes/wire.ts";
import { startWebhooks } from "./webhooks/wire.ts";

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
  const keyring = readKeyring(config);
  const { sealing, nodeKeys } = keyring;
  const background = createBackground(log);
  const base: Base = { ...deps, ...keyring, config, background, teardown };

  const baseTemplate = {
    image: config.baseImage,
    cpuCount: config.baseCpuCount,
    memoryMB: config.baseMemoryMb,
    diskSizeMB: config.baseDiskMb,
    envdVersion: ENVD_VERSION,
  };
  const place = config.databaseUrl ?? config.database;
  const { store, lineage, condition, template, schema, ping } = await openStore(
    { place, baseTemplate, sealing, now, log },
    teardown,
  );
  const { nodes, pools, routes } = await startNodes(base, { store, lineage, template });
  const audit = startAudit(base, store);
  teardown.add("background work", () => background.settled());
  const metrics = createPlatformMetrics(base, { store, nodes });
  const callers = createCallers(base, store);
  const own: { url?: string } = {};
  const workloadIdentity = await startWorkloadIdentity(base, { store, apiUrl: () => own.url });

  const secrets = await openSecrets(base, { store, tokens: workloadIdentity.tokens, onFirstUse: audit.noteUse });
  const { placeholders, tokenNames } = secrets;
  const sources = { store, nodes, metrics, callers };
  const lifecycle = startLifecycle(base, { ...sources, routes, placeholders, tokenNames });
  const { ending, checkpointing, autoResuming } = lifecycle;
  await finishAbandonedWork(base, { store, nodes, lifecycle });
  const nodeToken = (id: string) => nodeKeys.tokenTo(id);
  const edge = await openEdge(base, { routes, autoResuming, nodeToken });

  const templates = startTemplates(base, store);
  const { names, spawns } = templates;
  const usage = await startUsage(base, { store, metrics });
  const { meter } = usage;
  const repairs = startRepairs(base, { ...sources, lineage, pools, lifecycle, routes, spawns, meter });
  const events = createEvents(base, store);
  const webhooks = startWebhooks(base, { store, metrics });
  const builds = await startBuilds(base, { store, nodes, pools, names, metrics });
  const { queue, cleaning, archives, files } = builds;
  const removal = templates.removal({ snapshots: lifecycle.snapshots, pools, archives, builds: queue });
  const domain = config.domain ?? `localhost:${new URL(edge.url).port}`;
  const volumes = startVolumes(base, { ...sources, limits: callers.limits, nodeToken, domain });
  const { resolveMounts, problems: volumeProblems } = volumes;
  own.url = await startApi(base, {
    ...sources,
    schema,
    ping,
    databaseProblem: () => condition.problem,
    ending,
    builds: queue,
    cleaning,
    pools,
    files,
    recording: audit.recording,
    volumeContent: volumes.content,
    handlers: {
      ...audit.handlers,
      ...createSandboxes(base, {
        ...sources,
        lifecycle,
        placeholders,
        templates: names,
        pools,
        spawns,
        resolveMounts,
        domain,
      }),
      ...templates.handlers({ checkpointing, removal }),
      ...startProjects(base, {
        store,
        callers,
        ending,
        builds: queue,
        templates: removal,
        parts: [volumes.part],
      }),
      ...startSnapshots(base, { store, nodes, lifecycle, names, volumeProblems }),
      teamMetrics: usage.handlers,
      ...secrets.handlers,
      rotation: startRotation(base, { store, nodes }),
      volumes: volumes.handlers,
      unknownVolumes: volumes.unknown,
      builds: builds.handlers,
      events: events.handlers,
      webhooks: webhooks.handlers,
      ...repairs,
      ...workloadIdentity.handlers,
    },
  });
  // Before the API waits for requests under way: a stream would never end by itself.
  teardown.add("event streams", () => events.stop());
  const { url } = own;
  log.info({ url, edgeUrl: edge.url, schema, routes: routes.size }, "orchestrator started");
  return { url, edgeUrl: edge.url, stop: () => teardown.run() };
}

interface EdgeParts {
  readonly routes: EdgeRoutingTable;
  readonly autoResuming: Lifecycle["autoResuming"];
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
      ...defined({ docsUrl: documentation }),
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
