/** Constructs the platform API: authentication, keys, operators' routes, and the server with every folder's handlers. */

import type { AddressInfo, Socket } from "node:net";
import { addressList } from "../../shared/http/connections/client-address.ts";
import { connectionLimits } from "../../shared/http/connections/connection-limits.ts";
import type { Around } from "../../shared/http/serve.ts";
import { roomFor } from "../../shared/program/descriptors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import { createAuth } from "../access/auth.ts";
import { createKeyHandlers } from "../access/keys.ts";
import { createRateLimiter } from "../access/rate-limit.ts";
import { ratesOf } from "../access/rates.ts";
import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { BuildCleaning } from "../builds/cleanup.ts";
import type { BuildQueue } from "../builds/queue.ts";
import type { FileRoutesDeps } from "../builds/uploads/routes.ts";
import type { Console } from "../console/routes.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Machines } from "../machines/wire.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { Leases } from "../repairs/leases.ts";
import type { NodeRemoval } from "../repairs/node-removal.ts";
import type { Store } from "../store/store.ts";
import type { Content } from "../volumes/content.ts";
import { createAdminHandlers, createNodeHandlers } from "./admin.ts";
import { startConsoleServer } from "./console-server.ts";
import { drains } from "./drain.ts";
import { createHealthHandlers } from "./health.ts";
import { createDoctorHandlers } from "./node-doctor.ts";
import { startNodesServer, withoutMembers } from "./nodes-server.ts";
import { type ApiHandlers, createApiServer } from "./server.ts";

/** Requests under way get this long when the program stops; a start rarely takes more than a second. */
const DRAIN_MS = 15_000;
/** The API's share of the process's descriptors: the edge in the same process takes two for each request. */
const API_SHARE = 1 / 8;
interface ApiParts {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly metrics: Metrics;
  readonly callers: Callers;
  readonly schema: string;
  ping(): Promise<void>;
  readonly databaseProblem: () => string | undefined;
  /** What is wrong with the certificate that clients see; undefined: there is none. */
  readonly certificateFindings: () => readonly Finding[] | undefined;
  readonly lifecycle: Pick<Lifecycle, "ending" | "explain">;
  readonly builds: BuildQueue;
  readonly cleaning: BuildCleaning;
  readonly pools: Pools;
  readonly recording: Around;
  readonly files: Omit<FileRoutesDeps, "auth" | "around">;
  readonly volumeContent: Content;
  /** Undefined: the settings switch it off. */
  readonly console: Console | undefined;
  readonly joining: Machines["joining"];
  readonly removal: NodeRemoval;
  readonly nodeLeases: Leases;
  /** The handlers that other folders construct. */
  readonly handlers: Omit<ApiHandlers, "keys" | "admin" | "nodes" | "nodeDoctor" | "health">;
}

interface ApiUrls {
  readonly url: string;
  readonly nodesUrl: string | undefined;
  /** Undefined: the settings switch it off. */
  readonly consoleUrl: string | undefined;
  /** Serves a connection that the port for clients on other machines has accepted. */
  readonly accept: (connection: Socket) => void;
}

/** Resolves when the API listens, and the servers for nodes on other machines and of the console, where the settings want them. */
export async function startApi(base: Base, parts: ApiParts): Promise<ApiUrls> {
  const { config, now, log, teardown, nodeKeys, metricsTokens } = base;
  const { store, nodes, metrics, builds, cleaning, pools, schema } = parts;
  const { ending, explain } = parts.lifecycle;
  const { identity, adminTokens, keys } = parts.callers;
  const stopping = { asked: false };
  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const auth = createAuth({
    identity,
    projects: store.projects,
    limiter: createRateLimiter(now),
    refusals: createRateLimiter(now),
    adminTokens,
    nodeKeys,
    metricsTokens,
    ...ratesOf(config),
    observeLimited: (group) => metrics.limited(group),
  });
  const people = withoutMembers(auth, parts.joining);
  const handlers: ApiHandlers = {
    ...parts.handlers,
    keys: createKeyHandlers(keys),
    admin: createAdminHandlers({ store, ending, keys, nodes, builds, cleaning, pools }),
    nodes: createNodeHandlers({
      nodes,
      removal: parts.removal,
      leases: parts.nodeLeases,
      explain,
      store,
    }),
    nodeDoctor: createDoctorHandlers({ nodes }),
    health: createHealthHandlers({
      nodes,
      schema,
      ping: () => parts.ping(),
      databaseProblem: () => parts.databaseProblem(),
      certificateFindings: () => parts.certificateFindings(),
      stopping: () => stopping.asked,
    }),
  };
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
    files: parts.files,
    around: parts.recording,
    volumeContent: parts.volumeContent,
    console: config.consoleListen === undefined ? parts.console : undefined,
    auth: people,
    handlers,
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
  const url = `http://${host}:${port}`;
  const { joining, files, console: webConsole, recording, volumeContent } = parts;
  const nodesUrl = joining === undefined ? undefined : await startNodesServer(base, { joining, auth, files, handlers });
  const accept = (connection: Socket) => void server.server.emit("connection", connection);
  if (webConsole === undefined) return { url, nodesUrl, consoleUrl: undefined, accept };
  if (config.consoleListen === undefined) return { url, nodesUrl, consoleUrl: `${url}/console/`, accept };
  const listen = config.consoleListen;
  const own = {
    console: webConsole,
    auth: people,
    around: recording,
    files,
    handlers,
    volumeContent,
    metrics,
    isProxy,
    listen,
  };
  return { url, nodesUrl, consoleUrl: await startConsoleServer(base, own), accept };
}
