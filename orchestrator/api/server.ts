/** The platform API on one fastify server: every contract, CORS, documents, metrics. */

import type { FastifyInstance } from "fastify";
import { nodeApi } from "../../shared/agent-api/routes.ts";
import { adminApi, nodesApi } from "../../shared/api/admin.ts";
import { buildApi, removedApi } from "../../shared/api/builds.ts";
import { eventApi, webhookApi } from "../../shared/api/events.ts";
import { healthApi } from "../../shared/api/health.ts";
import { sandboxNetworkApi } from "../../shared/api/sandboxes/sandbox-network.ts";
import { sandboxApi, sandboxStateApi } from "../../shared/api/sandboxes/sandboxes.ts";
import { secretApi } from "../../shared/api/secrets.ts";
import { snapshotApi } from "../../shared/api/snapshots.ts";
import { storageApi } from "../../shared/api/storage.ts";
import { keyApi, teamApi, teamMetricsApi } from "../../shared/api/teams.ts";
import { tagApi, templateApi, templateChangeApi } from "../../shared/api/templates.ts";
import { volumeApi } from "../../shared/api/volumes.ts";
import type { ConnectionLimits } from "../../shared/http/connection-limits.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { serve } from "../../shared/http/serve.ts";
import { createServer } from "../../shared/http/server.ts";
import type { Log } from "../../shared/program/log.ts";
import { addFileRoutes, type FileRoutesDeps } from "../builds/uploads/routes.ts";
import type { Project } from "../store/projects.ts";
import type { Auth } from "./auth.ts";
import { addCors } from "./cors.ts";
import { addDocuments } from "./docs/documents.ts";
import { notYet, removed } from "./not-implemented.ts";
import type { Metrics } from "./prometheus.ts";

export interface ApiHandlers {
  readonly sandboxes: Handlers<typeof sandboxApi, Project>;
  readonly sandboxStates: Handlers<typeof sandboxStateApi, Project>;
  readonly sandboxNetworks: Handlers<typeof sandboxNetworkApi, Project>;
  readonly snapshots: Handlers<typeof snapshotApi, Project>;
  readonly templates: Handlers<typeof templateApi, Project>;
  readonly templateChanges: Handlers<typeof templateChangeApi, Project>;
  readonly builds: Handlers<typeof buildApi, Project>;
  readonly tags: Handlers<typeof tagApi, Project>;
  readonly keys: Handlers<typeof keyApi, Project>;
  readonly teams: Handlers<typeof teamApi>;
  readonly events: Handlers<typeof eventApi, Project>;
  readonly admin: Handlers<typeof adminApi>;
  readonly nodes: Handlers<typeof nodesApi>;
  readonly storage: Handlers<typeof storageApi>;
  readonly reports: Handlers<typeof nodeApi, string>;
  readonly health: Handlers<typeof healthApi>;
}

export function createApiServer(deps: {
  readonly log: Log;
  readonly auth: Auth;
  readonly metrics: Metrics;
  readonly handlers: ApiHandlers;
  readonly files: Omit<FileRoutesDeps, "auth">;
  readonly connections: ConnectionLimits;
  readonly trustedProxies: string;
}): FastifyInstance {
  const { auth, handlers, metrics, connections, trustedProxies } = deps;
  const server = createServer(deps.log, { connections, trustedProxies });
  addCors(server);
  metrics.watch(server);

  serve(server, sandboxApi, handlers.sandboxes, auth.project);
  serve(server, sandboxStateApi, handlers.sandboxStates, auth.project);
  serve(server, sandboxNetworkApi, handlers.sandboxNetworks, auth.project);
  serve(server, snapshotApi, handlers.snapshots, auth.project);
  serve(server, templateApi, handlers.templates, auth.project);
  serve(server, templateChangeApi, handlers.templateChanges, auth.project);
  serve(server, keyApi, handlers.keys, auth.project);
  serve(server, eventApi, handlers.events, auth.project);
  serve(server, teamApi, handlers.teams, auth.operator);
  serve(server, adminApi, handlers.admin, auth.operator);
  serve(server, nodesApi, handlers.nodes, auth.operator);
  serve(server, storageApi, handlers.storage, auth.operator);
  serve(server, nodeApi, handlers.reports, auth.node);
  serve(server, healthApi, handlers.health, auth.open);
  serve(server, removedApi, removed(), auth.open);

  serve(server, tagApi, handlers.tags, auth.project);
  serve(server, buildApi, handlers.builds, auth.project);
  addFileRoutes(server, { ...deps.files, auth });
  for (const later of [volumeApi, secretApi, webhookApi, teamMetricsApi]) {
    serve(server, later, notYet(later), auth.project);
  }
  addDocuments(server);
  addMetrics(server, metrics, auth);
  return server;
}

/** The description of the metrics route that `auth.metrics` needs. */
const METRICS = {
  method: "GET",
  path: "/metrics",
  summary: "Prometheus metrics",
  tag: "Admin",
  access: "admin",
  status: 200,
} as const;

function addMetrics(server: FastifyInstance, metrics: Metrics, auth: Auth): void {
  server.get(METRICS.path, async (request, reply) => {
    await auth.metrics(METRICS.access, request, METRICS, reply);
    return reply.type(metrics.contentType).send(await metrics.text());
  });
}
