/** Wires the orchestrator: calls each folder's constructor in the order of their needs, and stops the parts in reverse. */

import { addressList } from "../shared/http/connections/client-address.ts";
import { connectionLimits } from "../shared/http/connections/connection-limits.ts";
import { roomFor } from "../shared/program/descriptors.ts";
import { statusLine } from "../shared/program/service/status-line.ts";
import { Teardown } from "../shared/program/teardown.ts";
import type { Meeting } from "../shared/tls/peers.ts";
import { ENVD_VERSION, VERSION } from "../shared/version.ts";
import { startCallers } from "./access/wire.ts";
import { startApi } from "./api/wire.ts";
import { startAudit } from "./audit/wire.ts";
import { createBackground } from "./base/background.ts";
import type { Base, OrchestratorDeps } from "./base/base.ts";
import { createClock } from "./base/clock.ts";
import { createKeyring } from "./base/keys/keyring.ts";
import { startBuilds } from "./builds/wire.ts";
import type { OrchestratorConfig } from "./config.ts";
import { createConsole } from "./console/wire.ts";
import { createDashboard } from "./dashboard/wire.ts";
import { type Edge, startEdge } from "./edge/edge.ts";
import type { EdgeRoutingTable, FindSandbox } from "./edge/sandbox-lookup.ts";
import { type Behind, openSitePort, readSite, type SiteDeps } from "./edge/site.ts";
import { createEdges, createFind } from "./edges/wire.ts";
import { createEvents } from "./events/wire.ts";
import { startWorkloadIdentity } from "./identity/wire.ts";
import { type Lifecycle, startLifecycle } from "./lifecycle/wire.ts";
import { startMachines } from "./machines/wire.ts";
import type { DrainProgress } from "./metrics/node-gauges.ts";
import { createMetrics } from "./metrics/prometheus.ts";
import { startNodes } from "./nodes/wire.ts";
import { startProjects } from "./projects/wire.ts";
import { finishAbandonedWork, startRepairs } from "./repairs/wire.ts";
import { startRotation } from "./rotation/wire.ts";
import { createSandboxes } from "./sandboxes/wire.ts";
import { createSecrets } from "./secrets/wire.ts";
import { startSnapshots } from "./snapshots/wire.ts";
import { startStore } from "./store/wire.ts";
import { createTemplateHandling, createTemplates } from "./templates/wire.ts";
import { startUsage } from "./usage/wire.ts";
import { startVolumes } from "./volumes/wire.ts";
import { startWebhooks } from "./webhooks/wire.ts";

/** The edge's share of the descriptors: each client connection needs a second one to a node; the API has an eighth. */
const EDGE_SHARE = 3 / 8;
/** A restart of an agent takes some seconds. */
const NODE_WAIT_MS = 5_000;

export interface Orchestrator {
  readonly url: string;
  /** Undefined: this program is no edge. */
  readonly edgeUrl: string | undefined;
  /** For nodes on other machines; undefined: the platform has no port for them. */
  readonly nodesUrl: string | undefined;
  /** The port with TLS for clients on other machines; undefined: the settings name no certificate. */
  readonly sitePort: number | undefined;
  /** Undefined: the settings switch the console off. */
  readonly consoleUrl: string | undefined;
  /** What it does now, in a few words. */
  status(): string;
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
  const { log } = deps;
  const clock = createClock(deps.now);
  const { now } = clock;
  const keyring = createKeyring(config, deps);
  const { sealing, nodeKeys } = keyring;
  const background = createBackground(log);

  const baseTemplate = {
    image: config.baseImage,
    cpuCount: config.baseCpuCount,
    memoryMB: config.baseMemoryMb,
    diskSizeMB: config.baseDiskMb,
    envdVersion: ENVD_VERSION,
  };
  const place = config.databaseUrl ?? config.database;
  const { orchestratorLeaseMs: leaseMs } = config;
  const { store, lineage, condition, template, schema, ping, alone, leases, rounds, feed } = await startStore(
    {
      place,
      baseTemplate,
      sealing,
      now,
      log,
      version: VERSION,
      keys: keyring.shared,
      leaseMs,
      onDifference: clock.onDifference,
    },
    teardown,
  );
  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const siteDeps: SiteDeps = { log: log.child({ part: "site" }), now, teardown, isProxy };
  const site = await readSite(config, siteDeps);
  const base: Base = { ...deps, ...keyring, now, clock, config, background, teardown, alone, leases, rounds, feed };
  const machines = await startMachines(base, store);
  const { meeting } = machines;
  const { nodes, turns, pools, routes, hearing } = await startNodes(base, { store, lineage, template, meeting });
  const audit = startAudit(base, store);
  teardown.add("background work", () => background.settled());
  const own: {
    url?: string;
    leases?: ReturnType<typeof startRepairs>["leases"];
    drains?: () => Promise<readonly DrainProgress[]>;
  } = {};
  const metrics = createMetrics({
    store,
    nodes,
    turns,
    now,
    site,
    certificates: machines.certificates,
    leaseMs: (node) => own.leases?.forMs(node),
    drains: async () => (await own.drains?.()) ?? [],
  });
  const callers = startCallers(base, store);
  const workloadIdentity = await startWorkloadIdentity(base, { store, apiUrl: () => own.url });
  const { tokens } = workloadIdentity;
  const secrets = await createSecrets(base, { store, tokens, onFirstUse: audit.noteUse });
  const { vault, placeholders, tokenNames } = secrets;

  const lifecycle = startLifecycle(base, { store, nodes, turns, routes, metrics, callers, placeholders, tokenNames });
  const { ending, autoResuming, images } = lifecycle;
  await finishAbandonedWork(base, { store, nodes, lifecycle });
  const nodeToken = (id: string) => nodeKeys.tokenTo(id);
  const docsUrl = documentation(config);
  const find = createFind(store, routes);
  const edge =
    config.edge === "off"
      ? undefined
      : await openEdge(base, { routes, autoResuming, find, nodeToken, meeting, docsUrl });
  const edges = createEdges(base, { nodes, routes, autoResuming, find, docsUrl });

  const { names, spawns } = createTemplates(base, store);
  const { meter, handlers: teamMetrics } = startUsage(base, { store, metrics });
  const {
    removal,
    leases: nodeLeases,
    drainProgress,
    ...repairs
  } = startRepairs(base, {
    store,
    nodes,
    lifecycle,
    lineage,
    pools,
    routes,
    spawns,
    metrics,
    meter,
    hearing,
  });
  own.leases = nodeLeases;
  own.drains = drainProgress;
  const events = createEvents(base, store);
  const webhooks = startWebhooks(base, { store, metrics });
  const builds = await startBuilds(base, { store, lineage, nodes, images, pools, names, metrics });
  const { queue, cleaning, archives } = builds;
  const templates = createTemplateHandling({ store, names, lifecycle, pools, archives, builds: queue });
  const domain = config.domain ?? `localhost:${edge?.port ?? config.edgePort}`;
  const { limits } = callers;
  const volumes = startVolumes(base, { store, nodes, nodeToken, meeting, limits, metrics, domain });
  const sandboxes = createSandboxes(base, {
    store,
    nodes,
    metrics,
    lifecycle,
    callers,
    placeholders,
    templates: names,
    pools,
    spawns,
    resolveMounts: volumes.resolveMounts,
    domain,
  });
  const parts = [volumes.part];
  const projects = startProjects(base, { store, callers, ending, builds: queue, templates: templates.removal, parts });
  const { problems: volumeProblems } = volumes;
  const snapshots = startSnapshots(base, { store, nodes, lifecycle, names, volumeProblems });
  const rotation = startRotation(base, { store, nodes, vault, authorities: machines.authorities });
  const webConsole = createConsole(base, { store, callers, routes, nodeToken, meeting });
  const started = await startApi(base, {
    store,
    nodes,
    metrics,
    callers,
    schema,
    ping,
    databaseProblem: () => condition.problem,
    certificateFindings: () => site?.findings(),
    lifecycle,
    builds: queue,
    cleaning,
    pools,
    joining: machines.joining,
    removal,
    nodeLeases,
    files: builds.files,
    recording: audit.recording,
    volumeContent: volumes.content,
    console: webConsole,
    handlers: {
      ...audit.handlers,
      ...sandboxes,
      ...templates.handlers,
      ...createDashboard({ store, names }),
      ...projects,
      ...snapshots,
      ...secrets.handlers,
      ...repairs,
      ...workloadIdentity.handlers,
      ...rotation,
      teamMetrics,
      edges: edges.handlers,
      joinTokens: machines.joinTokens,
      joinedEdges: machines.edges,
      volumes: volumes.handlers,
      unknownVolumes: volumes.unknown,
      builds: builds.handlers,
      events: events.handlers,
      webhooks: webhooks.handlers,
    },
  });
  own.url = started.url;
  // What was changed since the parts have read the database is in it.
  feed.start();
  teardown.add("changes of other orchestrators", () => feed.stop());
  // Before the API waits for requests under way: a stream would never end by itself.
  teardown.add("streams of the console", () => webConsole?.stop());
  teardown.add("event streams", () => events.stop());
  teardown.add("edges", () => edges.stop());
  const behind: Behind = {
    api: started.accept,
    ...(edge === undefined ? {} : { edge: (connection) => edge.accept(connection) }),
  };
  const sitePort = site === undefined ? undefined : await openSitePort(config, site, behind, siteDeps);
  const { url, nodesUrl, consoleUrl } = started;
  const edgeUrl = edge?.url;
  log.info({ url, edgeUrl, nodesUrl, consoleUrl, sitePort, schema, routes: routes.size }, "orchestrator started");
  const status = () => {
    const known = nodes.list().flatMap(({ load }) => load.pools);
    return statusLine({ sandboxes: routes.size, pools: known, needs: { database: condition.problem } });
  };
  return { url, edgeUrl, nodesUrl, consoleUrl, sitePort, status, stop: () => teardown.run() };
}

interface EdgeParts {
  readonly routes: EdgeRoutingTable;
  readonly autoResuming: Lifecycle["autoResuming"];
  readonly find: FindSandbox;
  readonly nodeToken: (nodeId: string) => string;
  readonly meeting: (nodeId: string) => Meeting | undefined;
  readonly docsUrl: string | undefined;
}

/** Where the API's documentation is. Port 0 means that no port is chosen yet: the edge's page then has no link to the API. */
function documentation({ apiPort, publicUrl }: OrchestratorConfig): string | undefined {
  const apiUrl = publicUrl ?? (apiPort === 0 ? undefined : `http://localhost:${apiPort}`);
  return apiUrl === undefined ? undefined : `${apiUrl.replace(/\/+$/, "")}/docs`;
}

/** Opens the edge, which imports nothing of the orchestrator: this function reads the settings for it. */
async function openEdge(
  base: Base,
  { routes, autoResuming, find, nodeToken: tokenTo, meeting, docsUrl }: EdgeParts,
): Promise<Edge> {
  const { config, teardown, alone } = base;
  const log = base.log.child({ part: "edge" });
  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const edge = await startEdge(
    {
      host: config.edgeHost,
      port: config.edgePort,
      docsUrl: () => docsUrl,
      nodeToken: tokenTo,
      meeting,
      maxConnectionsPerSandbox: config.edgeConnectionLimit,
      nodeWaitMs: NODE_WAIT_MS,
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
      // Another orchestrator may have ended, paused or moved a sandbox: then its node and the store are asked.
      hasEveryRemoval: () => alone,
      autoResume: autoResuming.autoResume,
      find,
      pausedSandboxes: () => autoResuming.pausedSandboxes(),
    },
  );
  teardown.add("edge", () => edge.stop());
  return edge;
}
