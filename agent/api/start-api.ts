/** Serves the agent API and the operators' pages. Requests wait until the agent has made all of its parts. */

import { type AgentRun, identityApi } from "../../shared/agent-api/joining/identity-shapes.ts";
import { agentApi } from "../../shared/agent-api/routes.ts";
import { connectionLimits } from "../../shared/http/connections/connection-limits.ts";
import { serve } from "../../shared/http/serve.ts";
import { createServer } from "../../shared/http/server.ts";
import { roomFor } from "../../shared/program/descriptors.ts";
import type { Log } from "../../shared/program/log.ts";
import { readPrevious } from "../../shared/program/previous.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { Peering } from "../joining/peering.ts";
import { addVolumeRoutes } from "../volumes/routes.ts";
import type { VolumeFiles } from "../volumes/volume-files.ts";
import { addPeerRoutes } from "./peer-routes.ts";
import type { Instruments } from "./prometheus.ts";
import {
  type ApiDeps,
  addOperatorRoutes,
  handlers,
  type OperatorDeps,
  orchestratorOnly,
  servedOnly,
} from "./server.ts";
import { createStartGate } from "./start-gate.ts";

/** Share of the process's descriptors for API connections; the node proxy in the same process needs two per request. */
const API_SHARE = 1 / 8;

export interface StartApiDeps extends ApiDeps {
  readonly identity: AgentRun;
  readonly instruments: Instruments;
  readonly config: AgentConfig;
  readonly peering: Peering;
  readonly checks: OperatorDeps["checks"];
  readonly lastReport: OperatorDeps["lastReport"];
  readonly volumeFiles: VolumeFiles;
  /** For tests: the limit of open files. Absent: the kernel's limit for this process. */
  readonly descriptors?: number;
  readonly log: Log;
}

export interface Api {
  readonly url: string;
  /** Lets requests in. The server listens earlier, because the first report names its address. */
  start(): void;
}

export async function startApi(deps: StartApiDeps, teardown: Teardown): Promise<Api> {
  const { config, peering, instruments, checks, lastReport, descriptors, log } = deps;
  const room = roomFor(API_SHARE, { total: 0, perAddress: 0 }, descriptors);
  const server = createServer(log, {
    connections: connectionLimits({ ...room, name: "api", log }),
    door: peering.apiDoor,
  });
  teardown.add("api", () => server.close());
  const wired = createStartGate();
  server.addHook("onRequest", () => wired.passed);
  const authenticate = orchestratorOnly(peering);
  serve(server, agentApi, handlers(deps), servedOnly(authenticate, deps.serving));
  serve(server, identityApi, { identity: () => deps.identity }, (_access, request) => authenticate(request));
  addVolumeRoutes(server, {
    files: deps.volumeFiles,
    authenticate: (request) => {
      authenticate(request);
    },
    refusal: deps.refusal,
  });
  addPeerRoutes(server, deps);
  addOperatorRoutes(server, {
    instruments,
    checks,
    lastReport,
    metricsTokens: () => [
      ...peering.orchestratorTokens,
      ...(config.metricsToken === undefined ? [] : [config.metricsToken]),
      ...readPrevious(config.metricsTokenPrevious),
    ],
  });
  const url = await server.listen({ host: config.agentHost, port: config.agentPort });
  return { url, start: () => wired.open() };
}
