/** The second half of `app.ts`: the API's handlers and the periodic background work. */

import type { AddressInfo } from "node:net";
import { addressList } from "../shared/http/client-address.ts";
import { connectionLimits } from "../shared/http/connection-limits.ts";
import type { Route } from "../shared/http/contract.ts";
import { roomFor } from "../shared/program/descriptors.ts";
import { Teardown } from "../shared/program/teardown.ts";
import { createAdminHandlers, createNodeHandlers } from "./api/admin.ts";
import { createAuth } from "./api/auth.ts";
import { drains } from "./api/drain.ts";
import { createHealthHandlers } from "./api/health.ts";
import { createIdentity } from "./api/key-cache.ts";
import { createKeyHandlers, createKeys, createTeamHandlers } from "./api/keys.ts";
import { createRateLimiter, type Rate } from "./api/rate-limit.ts";
import { createApiServer } from "./api/server.ts";
import type { Parts } from "./app-parts.ts";
import { startBuilds } from "./builds/wire.ts";
import type { OrchestratorConfig } from "./config.ts";
import { createNetworkHandlers } from "./network/handlers.ts";
import { readAllowed } from "./network/proxy.ts";
import { createReportHandlers } from "./nodes/heartbeat.ts";
import { startHousekeeping } from "./nodes/housekeeping.ts";
import { createPools } from "./nodes/warm-pools.ts";
import { createSandboxHandlers } from "./sandboxes/handlers.ts";
import { createLaunch } from "./sandboxes/launch.ts";
import { createConnecting } from "./sandboxes/lifecycle/connect.ts";
import { createForking } from "./sandboxes/lifecycle/fork.ts";
import { createHolding } from "./sandboxes/lifecycle/holding.ts";
import { createLifetime } from "./sandboxes/lifecycle/timeout.ts";
import { createEventHandlers, createObservationHandlers } from "./sandboxes/observation.ts";
import { createSandboxStateHandlers } from "./sandboxes/state-handlers.ts";
import { createSnapshotHandlers } from "./snapshots/handlers.ts";
import { openDatabase } from "./store/database.ts";
import { createTemplateHandlers } from "./templates/handlers.ts";
import { createTemplateNames } from "./templates/names.ts";
import { createSpawns } from "./templates/usage.ts";

const DAY_MS = 86_400_000;
/** Requests under way get this long when the program stops; a start rarely takes more than a second. */
const DRAIN_MS = 15_000;
/** The API's share of the process's descriptors: the edge in the same process takes two for each request. */
const API_SHARE = 1 / 8;

/** Resolves with the API's URL when the API listens. */
export async function serveApi(
  parts: Parts,
  { opened, teardown }: { readonly opened: Awaited<ReturnType<typeof openDatabase>>; readonly teardown: Teardown },
): Promise<string> {
  const { config, deps, store, nodes, routes, ending, background, base, metrics } = parts;
  const { expiry, sealing, sleep, limits } = parts;
  const { maxHours, maxSandboxes } = limits;
  const { log, now } = deps;

  const spawns = createSpawns((id, count) => store.templates.countSpawns(id, count));
  teardown.add("spawn counts", () => spawns.flush());
  const housekeeping = startHousekeeping({
    store,
    spawns,
    nodes,
    ending,
    ...sleep,
    now,
    log,
    everyMs: config.reconcileEveryMs,
    nodeLostMs: config.nodeLostMs,
    historyMs: config.historyDays * DAY_MS,
  });
  teardown.add("housekeeping", () => housekeeping.stop());

  const launch = createLaunch({
    store,
    nodes,
    routes,
    background,
    now,
    random: deps.random,
    log,
    placement: { cpuOvercommit: config.nodeCpuOvercommit, memoryOvercommit: config.nodeMemoryOvercommit },
    startTimeoutMs: config.startTimeoutMs,
    placementTimeoutMs: config.placementTimeoutMs,
    end: (nodeId, executionId) => ending.end(nodeId, executionId),
    observe: (outcome) => metrics.created(outcome),
  });
  const pools = createPools({ base, baseSize: config.poolSize, ceiling: config.poolCeiling, now });
  const identity = createIdentity({ keys: store.keys, background, now });
  const keys = createKeys({ keys: store.keys, identity });
  const templates = createTemplateNames(store.templates);
  const building = await startBuilds(parts, { pools, names: templates, teardown });
  const lifetime = createLifetime({ store, nodes, background, expiry, now, maxHours });
  const connecting = createConnecting({
    store,
    lifetime,
    transitions: parts.transitions,
    maxSandboxes,
    resuming: sleep.resuming,
    waitMs: config.patienceMs,
  });
  const forking = createForking({
    store,
    launch,
    sealing,
    now,
    maxSandboxes,
    capturing: sleep.capturing,
    seed: config.seed,
    concurrency: config.forkConcurrency,
  });
  const domain = config.domain ?? `localhost:${new URL(parts.edge.url).port}`;
  const stopping = { asked: false };
  const proxyRanges = readAllowed(config.egressProxyAllow);

  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const server = createApiServer({
    log,
    trustedProxies: config.trustedProxies,
    connections: connectionLimits({
      ...roomFor(API_SHARE, { total: config.apiConnections, perAddress: config.apiConnectionsPerAddress }),
      name: "api",
      isShared: (address) =>
        isProxy(address) || nodes.list().some(({ facts }) => new URL(facts.apiUrl).hostname === address),
      log,
    }),
    metrics,
    files: building.files,
    auth: createAuth({
      identity,
      projects: store.projects,
      limiter: createRateLimiter(now),
      refusals: createRateLimiter(now),
      adminToken: config.adminToken,
      nodeKey: config.nodeKey,
      metricsToken: config.metricsToken,
      rate: (route) => rateOf(route, config),
      refusedRate: perMinute(config.rateLimitFailedAuthPerMinute),
      refusedInAll: perMinute(10 * config.rateLimitFailedAuthPerMinute),
      observeLimited: (group) => metrics.limited(group),
    }),
    handlers: {
      sandboxes: {
        ...createSandboxHandlers({
          store,
          launch,
          ending,
          lifetime,
          connecting,
          templates,
          pools,
          spawns,
          background,
          sealing,
          now,
          maxHours,
          maxSandboxes,
          proxyRanges,
          seed: config.seed,
          domain,
        }),
        ...createObservationHandlers({ store, nodes, log }),
      },
      sandboxStates: createSandboxStateHandlers({
        connecting,
        forking,
        ending,
        background,
        maxHours,
        domain,
        pausing: sleep.pausing,
        seed: config.seed,
      }),
      sandboxNetworks: createNetworkHandlers({ store, nodes, log, proxyRanges, updating: sleep.networks }),
      snapshots: createSnapshotHandlers({ store, names: templates, capturing: sleep.capturing }),
      templates: createTemplateHandlers({ templates: store.templates, names: templates }),
      templateChanges: building.templateChanges,
      builds: building.builds,
      tags: building.tags,
      keys: createKeyHandlers({ keys, store: store.keys }),
      teams: createTeamHandlers(store.projects),
      events: createEventHandlers(store),
      admin: createAdminHandlers({
        store,
        ending,
        keys,
        nodes,
        builds: building.queue,
        cleaning: building.cleaning,
      }),
      nodes: createNodeHandlers(nodes),
      reports: createReportHandlers({
        store: store.sandboxes,
        pausedSandboxes: store.pausedSandboxes,
        pausing: sleep.pausing,
        nodes,
        routes,
        ending,
        pools,
        holding: createHolding({ store, routes, log }),
        grace: { orphanMs: config.orphanGraceMs, missingMs: config.missingGraceMs },
        now,
        log,
        observe: (kind, count) => metrics.repaired(kind, count),
      }),
      health: createHealthHandlers({
        nodes,
        schema: opened.schema,
        ping: () => opened.ping(),
        stopping: () => stopping.asked,
      }),
    },
  });
  const draining = drains(server);
  await server.listen({ host: config.apiHost, port: config.apiPort });
  teardown.add("api server", () => server.close());
  teardown.add("requests under way", () => draining.drain(DRAIN_MS));
  teardown.add("readiness", () => {
    stopping.asked = true;
  });
  const { port } = server.server.address() as AddressInfo;
  const host = config.apiHost.includes(":") ? `[${config.apiHost}]` : config.apiHost;
  return `http://${host}:${port}`;
}

function perMinute(count: number): Rate {
  return { perSecond: count / 60, burst: count };
}

/** A start of a sandbox costs more than a read. */
function rateOf(route: Route, config: OrchestratorConfig): { readonly group: string; readonly rate: Rate } {
  const rate = (perSecond: number): Rate => ({ perSecond, burst: perSecond * 2 });
  if (route.method === "GET") return { group: "read", rate: rate(config.rateLimitReadPerSecond) };
  const starts = /^(\/v2)?\/sandboxes$|\/(fork|resume|connect)$/.test(route.path);
  if (route.method === "POST" && starts) return { group: "create", rate: rate(config.rateLimitCreatePerSecond) };
  return { group: "write", rate: rate(config.rateLimitWritePerSecond) };
}
