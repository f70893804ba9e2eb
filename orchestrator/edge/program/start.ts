/** Wires the edge program: the routes that it follows, the edge itself, the port for operators' tools. */

import { addressList } from "../../../shared/http/connections/client-address.ts";
import { connectionLimits } from "../../../shared/http/connections/connection-limits.ts";
import { roomFor } from "../../../shared/program/descriptors.ts";
import type { Log } from "../../../shared/program/log.ts";
import { statusLine } from "../../../shared/program/service/status-line.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { LiveCredentials } from "../../../shared/tls/live.ts";
import { nodeName } from "../../../shared/tls/names.ts";
import { type Edge, startEdge } from "../edge.ts";
import { type Follower, follow } from "../following/follower.ts";
import { routeSource } from "../following/source.ts";
import { openSitePort, readSite, type SiteDeps } from "../site.ts";
import { type EdgeConfig, orchestratorsOf } from "./config.ts";
import { meetingOf, openMembership, startEdgeRenewal } from "./joining.ts";
import { startStatus } from "./status.ts";

/** The edge's share of the descriptors: each client connection needs a second one to a node. */
const EDGE_SHARE = 7 / 16;

export interface EdgeProgramDeps {
  readonly log: Log;
  readonly now: () => number;
  /** A random number in [0, 1). */
  readonly random: () => number;
  /** Id of this machine (see `NodeFacts.machineId`); undefined: not known, so no container is dialled straight. */
  readonly machineId: string | undefined;
  /** Aborts when the program is asked to stop, which it may be before an orchestrator has answered. */
  readonly stopping?: AbortSignal;
}

export interface EdgeProgram {
  /** Undefined: it was asked to stop before it listened. */
  readonly url: string | undefined;
  readonly statusUrl: string;
  /** What it does now, in a few words. */
  readonly status?: () => string;
  stop(): Promise<void>;
}

/** Resolves when the edge listens and has the routes of an orchestrator. */
export async function startEdgeProgram(config: EdgeConfig, deps: EdgeProgramDeps): Promise<EdgeProgram> {
  const teardown = new Teardown(deps.log);
  try {
    return await start(config, deps, teardown);
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

async function start(config: EdgeConfig, deps: EdgeProgramDeps, teardown: Teardown): Promise<EdgeProgram> {
  const { log, now, random, machineId } = deps;
  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const siteDeps: SiteDeps = { log, now, teardown, isProxy };
  const site = await readSite(config, siteDeps);
  const credentials = await openMembership(config, { now, log });
  const sources = sourcesOf(config, credentials);
  const follower = follow({ sources, machineId, awayMs: config.edgeAskMs, log, random });
  teardown.add("routes", () => follower.stop());
  if (credentials !== undefined) startEdgeRenewal(credentials, config, { now, log, teardown });
  const serving: { edge?: Edge } = {};
  const edgeOf = () => serving.edge;
  const statusUrl = await startStatus(config, { log, follower, edge: edgeOf, site, credentials, teardown });
  // An edge without routes would answer that sandboxes do not exist.
  await follower.ready(deps.stopping);
  const stop = () => teardown.run();
  if (deps.stopping?.aborted === true) return { url: undefined, statusUrl, stop };
  const edge = await openEdge(config, { log, follower, credentials });
  serving.edge = edge;
  teardown.add("edge", () => edge.stop());
  if (site !== undefined) await openSitePort(config, site, { edge: (connection) => edge.accept(connection) }, siteDeps);
  log.info({ url: edge.url, statusUrl, routes: follower.size, orchestrator: follower.followed }, "edge started");
  const status = () => {
    const orchestrator = follower.followed === undefined ? "not followed" : undefined;
    return statusLine({ sandboxes: follower.size, needs: { orchestrator } });
  };
  return { url: edge.url, statusUrl, status, stop };
}

function sourcesOf(config: EdgeConfig, credentials: LiveCredentials | undefined) {
  const { edgeToken } = config;
  const headers = (): Record<string, string> =>
    credentials !== undefined || edgeToken === undefined ? {} : { authorization: `Bearer ${edgeToken}` };
  const meeting = credentials === undefined ? undefined : meetingOf(credentials);
  return orchestratorsOf(config).map((url) => routeSource({ url, headers, meeting }));
}

interface EdgeParts {
  readonly log: Log;
  readonly follower: Follower;
  readonly credentials: LiveCredentials | undefined;
}

function openEdge(config: EdgeConfig, { log, follower, credentials }: EdgeParts): Promise<Edge> {
  const isProxy = addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const { edgeConnections: total, edgeConnectionsPerAddress: perAddress } = config;
  return startEdge(
    {
      host: config.edgeHost,
      port: config.edgePort,
      docsUrl: () => follower.docsUrl,
      nodeToken: (nodeId) => follower.tokenTo(nodeId),
      meeting: (nodeId) => (credentials === undefined ? undefined : { credentials, expects: nodeName(nodeId) }),
      maxConnectionsPerSandbox: config.edgeConnectionLimit,
      nodeWaitMs: config.edgeAskMs,
    },
    {
      log,
      connections: connectionLimits({
        ...roomFor(EDGE_SHARE, { total, perAddress }),
        name: "edge",
        isShared: isProxy,
        log,
      }),
      isProxy,
      routes: follower.routes,
      hasEveryRemoval: () => follower.hasEveryRemoval(),
      autoResume: follower.autoResume,
      find: follower.find,
      pausedSandboxes: () => follower.pausedSandboxes(),
    },
  );
}
