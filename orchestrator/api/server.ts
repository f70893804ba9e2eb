/** The platform API on one fastify server: every contract, CORS, documents, metrics. */

import type { FastifyInstance } from "fastify";
import { nodeApi } from "../../shared/agent-api/routes.ts";
import { valueApi } from "../../shared/agent-api/value-shapes.ts";
import { adminApi } from "../../shared/api/admin.ts";
import { adminAuditApi, auditApi } from "../../shared/api/audit.ts";
import { buildApi, removedApi } from "../../shared/api/builds.ts";
import {
  dashboardBuildApi,
  dashboardHealthApi,
  dashboardTagApi,
  dashboardTemplateApi,
} from "../../shared/api/dashboard.ts";
import { webhookApi } from "../../shared/api/events/webhooks.ts";
import { eventApi } from "../../shared/api/events.ts";
import { healthApi } from "../../shared/api/health.ts";
import { discoveryApi, identityAdminApi } from "../../shared/api/identity/identity.ts";
import { authorityRotationApi } from "../../shared/api/keys/authority-rotation.ts";
import { rotationApi } from "../../shared/api/keys/rotation.ts";
import { nodeDoctorApi } from "../../shared/api/nodes/doctor.ts";
import { drainApi } from "../../shared/api/nodes/drains.ts";
import { edgesApi } from "../../shared/api/nodes/edges.ts";
import { joinTokenApi } from "../../shared/api/nodes/join-tokens.ts";
import { nodeStoreApi, nodesApi } from "../../shared/api/nodes/nodes.ts";
import { adminSandboxApi } from "../../shared/api/projects/all-sandboxes.ts";
import { projectAdminApi, projectApi, workspaceApi } from "../../shared/api/projects/projects.ts";
import { sandboxNetworkApi } from "../../shared/api/sandboxes/sandbox-network.ts";
import { sandboxStateApi } from "../../shared/api/sandboxes/sandbox-states.ts";
import { sandboxApi } from "../../shared/api/sandboxes/sandboxes.ts";
import { secretApi, secretKeyApi } from "../../shared/api/secrets.ts";
import { snapshotApi } from "../../shared/api/snapshots.ts";
import { storageApi, unknownVolumeApi } from "../../shared/api/storage.ts";
import { snapshotCheckApi } from "../../shared/api/stored/snapshot-checks.ts";
import { keyApi, teamApi, teamMetricsApi } from "../../shared/api/teams.ts";
import { tagApi, templateApi, templateChangeApi } from "../../shared/api/templates.ts";
import { volumeApi } from "../../shared/api/volumes/volumes.ts";
import type { ConnectionLimits } from "../../shared/http/connections/connection-limits.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { type Around, serve, surround } from "../../shared/http/serve.ts";
import { createServer } from "../../shared/http/server.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Auth, EdgeVisitor } from "../access/auth.ts";
import type { ProjectCaller } from "../access/project-caller.ts";
import { addFileRoutes, addUploads, type FileRoutesDeps } from "../builds/uploads/routes.ts";
import type { Console } from "../console/routes.ts";
import { addRows } from "../console/rows.ts";
import { edgeApi } from "../edge/following/messages.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Project } from "../store/projects/record.ts";
import type { Content } from "../volumes/content.ts";
import { addCors } from "./cors.ts";
import { addDocuments } from "./docs/documents.ts";
import { removed } from "./removed.ts";

export interface ApiHandlers {
  readonly sandboxes: Handlers<typeof sandboxApi, ProjectCaller>;
  readonly sandboxStates: Handlers<typeof sandboxStateApi, Project>;
  readonly sandboxNetworks: Handlers<typeof sandboxNetworkApi, Project>;
  readonly snapshots: Handlers<typeof snapshotApi, Project>;
  readonly templates: Handlers<typeof templateApi, Project>;
  readonly templateChanges: Handlers<typeof templateChangeApi, Project>;
  readonly builds: Handlers<typeof buildApi, Project>;
  readonly tags: Handlers<typeof tagApi, Project>;
  readonly keys: Handlers<typeof keyApi, ProjectCaller>;
  readonly teams: Handlers<typeof teamApi>;
  readonly events: Handlers<typeof eventApi, Project>;
  readonly projects: Handlers<typeof projectApi, Project>;
  readonly projectsAdmin: Handlers<typeof projectAdminApi>;
  readonly workspaces: Handlers<typeof workspaceApi>;
  readonly allSandboxes: Handlers<typeof adminSandboxApi>;
  readonly webhooks: Handlers<typeof webhookApi, Project>;
  readonly admin: Handlers<typeof adminApi>;
  readonly nodes: Handlers<typeof nodesApi>;
  readonly nodeStores: Handlers<typeof nodeStoreApi>;
  readonly nodeDoctor: Handlers<typeof nodeDoctorApi>;
  readonly drains: Handlers<typeof drainApi>;
  readonly snapshotChecks: Handlers<typeof snapshotCheckApi>;
  readonly storage: Handlers<typeof storageApi>;
  readonly unknownVolumes: Handlers<typeof unknownVolumeApi>;
  readonly teamMetrics: Handlers<typeof teamMetricsApi, Project>;
  readonly secrets: Handlers<typeof secretApi, Project>;
  readonly secretKeys: Handlers<typeof secretKeyApi>;
  readonly values: Handlers<typeof valueApi, string>;
  readonly rotation: Handlers<typeof rotationApi>;
  readonly authorityRotation: Handlers<typeof authorityRotationApi>;
  readonly audit: Handlers<typeof auditApi, Project>;
  readonly adminAudit: Handlers<typeof adminAuditApi>;
  readonly identity: Handlers<typeof identityAdminApi>;
  readonly discovery: Handlers<typeof discoveryApi>;
  readonly joinTokens: Handlers<typeof joinTokenApi>;
  readonly volumes: Handlers<typeof volumeApi, Project>;
  readonly reports: Handlers<typeof nodeApi, string>;
  readonly edges: Handlers<typeof edgeApi, EdgeVisitor>;
  readonly joinedEdges: Handlers<typeof edgesApi>;
  readonly health: Handlers<typeof healthApi>;
  readonly dashboardHealth: Handlers<typeof dashboardHealthApi>;
  readonly dashboardBuilds: Handlers<typeof dashboardBuildApi, Project>;
  readonly dashboardTemplates: Handlers<typeof dashboardTemplateApi, Project>;
  readonly dashboardTags: Handlers<typeof dashboardTagApi, Project>;
}

export function createApiServer(deps: {
  readonly log: Log;
  readonly auth: Auth;
  readonly metrics: Metrics;
  readonly handlers: ApiHandlers;
  readonly files: Omit<FileRoutesDeps, "auth" | "around">;
  /** Records the requests that change something. */
  readonly around: Around;
  readonly volumeContent: Content;
  /** Undefined: the settings switch it off, or another server has it. */
  readonly console: Console | undefined;
  readonly connections: ConnectionLimits;
  readonly trustedProxies: string;
}): FastifyInstance {
  const { auth, handlers, metrics, connections, trustedProxies } = deps;
  const server = createServer(deps.log, { connections, trustedProxies, beginsTraces: true });
  addCors(server);
  metrics.watch(server);
  surround(server, deps.around);

  servePeople(server, handlers, auth);
  serveDashboard(server, handlers, auth);
  serve(server, discoveryApi, handlers.discovery, auth.open);
  serve(server, nodeApi, handlers.reports, auth.node);
  serve(server, edgeApi, handlers.edges, auth.edge);
  serve(server, valueApi, handlers.values, auth.node);
  serve(server, healthApi, handlers.health, auth.open);
  serve(server, removedApi, removed(), auth.open);
  addFileRoutes(server, { ...deps.files, auth, around: deps.around });
  deps.volumeContent.add(server, auth);
  if (deps.console !== undefined) addConsole(server, { ...deps, console: deps.console });
  addDocuments(server);
  addMetrics(server, metrics, auth);
  return server;
}

export interface ConsoleParts {
  readonly console: Console;
  readonly auth: Auth;
  readonly around: Around;
  readonly handlers: ApiHandlers;
  readonly files: Omit<FileRoutesDeps, "auth" | "around">;
  readonly volumeContent: Content;
}

/** The console, which has the routes for people a second time, and their uploads. */
export function addConsole(server: FastifyInstance, parts: ConsoleParts): void {
  const { console, auth, around, handlers, files, volumeContent } = parts;
  console.add(server, {
    auth,
    around,
    serve(to, people) {
      servePeople(to, handlers, people);
      addRows(to, people, handlers.sandboxes);
      addUploads(to, { ...files, around });
      volumeContent.addForProject(to, people);
    },
  });
}

/** The routes of projects and operators. */
function servePeople(server: FastifyInstance, handlers: ApiHandlers, auth: Pick<Auth, "project" | "operator">): void {
  serve(server, sandboxApi, handlers.sandboxes, auth.project);
  serve(server, sandboxStateApi, handlers.sandboxStates, auth.project);
  serve(server, sandboxNetworkApi, handlers.sandboxNetworks, auth.project);
  serve(server, snapshotApi, handlers.snapshots, auth.project);
  serve(server, templateApi, handlers.templates, auth.project);
  serve(server, templateChangeApi, handlers.templateChanges, auth.project);
  serve(server, keyApi, handlers.keys, auth.project);
  serve(server, eventApi, handlers.events, auth.project);
  serve(server, projectApi, handlers.projects, auth.project);
  serve(server, projectAdminApi, handlers.projectsAdmin, auth.operator);
  serve(server, workspaceApi, handlers.workspaces, auth.operator);
  serve(server, adminSandboxApi, handlers.allSandboxes, auth.operator);
  serve(server, webhookApi, handlers.webhooks, auth.project);
  serve(server, teamApi, handlers.teams, auth.operator);
  serve(server, teamMetricsApi, handlers.teamMetrics, auth.project);
  serve(server, adminApi, handlers.admin, auth.operator);
  serve(server, nodesApi, handlers.nodes, auth.operator);
  serve(server, nodeStoreApi, handlers.nodeStores, auth.operator);
  serve(server, nodeDoctorApi, handlers.nodeDoctor, auth.operator);
  serve(server, drainApi, handlers.drains, auth.operator);
  serve(server, joinTokenApi, handlers.joinTokens, auth.operator);
  serve(server, edgesApi, handlers.joinedEdges, auth.operator);
  serve(server, snapshotCheckApi, handlers.snapshotChecks, auth.operator);
  serve(server, storageApi, handlers.storage, auth.operator);
  serve(server, unknownVolumeApi, handlers.unknownVolumes, auth.operator);
  serve(server, rotationApi, handlers.rotation, auth.operator);
  serve(server, authorityRotationApi, handlers.authorityRotation, auth.operator);
  serve(server, auditApi, handlers.audit, auth.project);
  serve(server, adminAuditApi, handlers.adminAudit, auth.operator);
  serve(server, identityAdminApi, handlers.identity, auth.operator);
  serve(server, secretApi, handlers.secrets, auth.project);
  serve(server, secretKeyApi, handlers.secretKeys, auth.operator);
  serve(server, tagApi, handlers.tags, auth.project);
  serve(server, buildApi, handlers.builds, auth.project);
  serve(server, volumeApi, handlers.volumes, auth.project);
}

/** What E2B's open dashboard calls beside the routes of projects. */
function serveDashboard(server: FastifyInstance, handlers: ApiHandlers, auth: Auth): void {
  serve(server, dashboardHealthApi, handlers.dashboardHealth, auth.open);
  serve(server, dashboardBuildApi, handlers.dashboardBuilds, auth.project);
  serve(server, dashboardTemplateApi, handlers.dashboardTemplates, auth.project);
  serve(server, dashboardTagApi, handlers.dashboardTags, auth.project);
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
