/** Routes about projects: operators create, limit, close and delete them; a project reads its limits. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { map, nullable, TeamId, Timestamp } from "../common.ts";
import { DisplayName } from "../teams.ts";

const admin = { tag: "Projects", access: "admin" } as const;
const byProject = Type.Object({ projectID: TeamId });
const NodeLabels = map(Type.String({ maxLength: 256, pattern: "^[^,\\u0000-\\u001f\\u007f]*$" }), {
  names: Type.String({ minLength: 1, maxLength: 63, pattern: "^[^=,\\u0000-\\u001f\\u007f]+$" }),
  maxProperties: 16,
  description: "Labels (SVC_LABELS) that a node must have to run its sandboxes and builds, all of them",
});
const WorkspaceId = Type.String({ minLength: 1, maxLength: 64, description: "wrk_ id" });
const byWorkspace = Type.Object({ workspaceID: WorkspaceId });

const count = (minimum: number, description: string) =>
  Type.Optional(nullable(Type.Integer({ minimum, maximum: 2_147_483_647, description })));

const LimitsChange = Type.Object(
  {
    sandboxes: count(1, "Running sandboxes"),
    startsPerMinute: count(1, "Sandboxes started in a minute"),
    totalCPU: count(1, "CPU cores of running sandboxes together"),
    totalMemoryMB: count(128, "Memory of running sandboxes together, MiB"),
    totalDiskMB: count(0, "Disk of running sandboxes together, MiB"),
    sandboxHours: count(1, "Longest life of a sandbox, hours"),
    sandboxCPU: count(1, "CPU cores of one sandbox or template"),
    sandboxMemoryMB: count(128, "Memory of one sandbox or template, MiB"),
    sandboxDiskMB: count(0, "Free disk of one template, MiB"),
    builds: count(1, "Builds at a time; further ones wait"),
    snapshots: count(0, "Snapshots"),
    volumes: count(0, "Volumes"),
    egressRules: count(0, "Destinations that the network options of one sandbox name"),
  },
  { description: "The project's own limits; null takes one back, so that the platform's holds" },
);

const Limit = Type.Object({
  limit: nullable(Type.Integer({ description: "null: no limit" })),
  used: nullable(Type.Integer({ description: "null: the limit is of each sandbox" })),
  own: Type.Boolean({ description: "false: the platform's limit" }),
});
const limitNames = Object.keys(LimitsChange.properties) as (keyof typeof LimitsChange.properties)[];
const Limits = Type.Object({
  limits: Type.Object(
    Object.fromEntries(limitNames.map((name) => [name, Limit])) as Record<(typeof limitNames)[number], typeof Limit>,
  ),
  contact: Type.String({ description: "Whom to ask for more" }),
});

const Project = Type.Object({
  teamID: Type.String({ description: "UUID" }),
  projectID: Type.String({ description: "prj_ id" }),
  name: Type.String(),
  slug: Type.String({ description: "Namespace of the project's template names; never changes" }),
  workspaceID: nullable(Type.String({ description: "wrk_ id" })),
  region: nullable(Type.String({ description: "null: any node may run its sandboxes" })),
  nodeLabels: NodeLabels,
  status: Type.Enum(["active", "disabled", "banned", "deleting"]),
  statusReason: nullable(Type.String()),
  limits: Type.Record(Type.String(), Type.Integer(), { description: "The project's own limits" }),
  createdAt: Timestamp,
});
export type Project = Static<typeof Project>;

const Deletion = Type.Object({
  teamID: Type.String(),
  projectID: Type.String(),
  name: Type.String(),
  status: Type.Enum(["deleting", "deleted"]),
  startedAt: Timestamp,
  finishedAt: nullable(Timestamp),
  remaining: Type.Record(Type.String(), Type.Integer(), { description: "What is left, by kind" }),
});
export type Deletion = Static<typeof Deletion>;

const Reason = Type.String({
  minLength: 1,
  maxLength: 512,
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f]+$",
  description: "Shown to the project's callers",
});

export const projectApi = contract({
  projectLimits: {
    method: "GET",
    path: "/projects/{projectID}/limits",
    summary: "The limits of the caller's project and what it uses of them",
    tag: "Projects",
    access: "project",
    params: byProject,
    status: 200,
    reply: Limits,
    errors: [401, 403, 404],
  },
});

export const projectAdminApi = contract({
  createProject: {
    ...admin,
    method: "POST",
    path: "/admin/projects",
    summary: "Create a project",
    body: Type.Object({
      name: DisplayName,
      slug: Type.Optional(
        Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,63}$", description: "Default: made from the name" }),
      ),
      region: Type.Optional(
        Type.String({ minLength: 1, maxLength: 64, description: "One of SVC_REGIONS; default: any node" }),
      ),
      nodeLabels: Type.Optional(NodeLabels),
      workspaceID: Type.Optional(WorkspaceId),
      limits: Type.Optional(LimitsChange),
    }),
    status: 201,
    reply: Project,
    errors: [400, 401, 404, 409],
  },
  listProjects: {
    ...admin,
    method: "GET",
    path: "/admin/projects",
    summary: "List projects",
    query: Type.Object({ workspaceID: Type.Optional(WorkspaceId) }),
    status: 200,
    reply: Type.Array(Project),
    errors: [400, 401],
  },
  readProject: {
    ...admin,
    method: "GET",
    path: "/admin/projects/{projectID}",
    summary: "Read a project",
    params: byProject,
    status: 200,
    reply: Project,
    errors: [400, 401, 404],
  },
  changeProject: {
    ...admin,
    method: "PATCH",
    path: "/admin/projects/{projectID}",
    summary: "Rename a project, change its limits or the labels of its nodes, or move it to another workspace",
    params: byProject,
    body: Type.Object({
      name: Type.Optional(DisplayName),
      nodeLabels: Type.Optional(NodeLabels),
      workspaceID: Type.Optional(WorkspaceId),
      limits: Type.Optional(LimitsChange),
    }),
    status: 200,
    reply: Project,
    errors: [400, 401, 404, 409],
  },
  readProjectLimits: {
    ...admin,
    method: "GET",
    path: "/admin/projects/{projectID}/limits",
    summary: "The limits of a project and what it uses of them",
    params: byProject,
    status: 200,
    reply: Limits,
    errors: [400, 401, 404],
  },
  disableProject: {
    ...admin,
    method: "POST",
    path: "/admin/projects/{projectID}/disable",
    summary: "Let a project only read and delete; its running sandboxes stay",
    params: byProject,
    body: Type.Object({ reason: Reason }),
    status: 200,
    reply: Project,
    errors: [400, 401, 404, 409],
  },
  banProject: {
    ...admin,
    method: "POST",
    path: "/admin/projects/{projectID}/ban",
    summary: "Refuse every call of a project; its running sandboxes stay",
    params: byProject,
    body: Type.Object({ reason: Type.Optional(Reason) }),
    optionalBody: true,
    status: 200,
    reply: Project,
    errors: [400, 401, 404, 409],
  },
  enableProject: {
    ...admin,
    method: "POST",
    path: "/admin/projects/{projectID}/enable",
    summary: "Take a disabled or banned project back",
    params: byProject,
    status: 200,
    reply: Project,
    errors: [400, 401, 404, 409],
  },
  deleteProject: {
    ...admin,
    method: "DELETE",
    path: "/admin/projects/{projectID}",
    summary: "End and remove everything of a project: its keys before the answer, the rest afterwards",
    params: byProject,
    status: 202,
    reply: Deletion,
    errors: [400, 401, 404],
  },
  readProjectDeletion: {
    ...admin,
    method: "GET",
    path: "/admin/projects/{projectID}/deletion",
    summary: "How far the deletion of a project is; readable after its end too",
    params: byProject,
    status: 200,
    reply: Deletion,
    errors: [400, 401, 404],
  },
});

const Workspace = Type.Object({
  workspaceID: Type.String({ description: "wrk_ id" }),
  name: Type.String(),
  isDefault: Type.Boolean({ description: "Projects that name no workspace are created in it" }),
  createdAt: Timestamp,
});
export type Workspace = Static<typeof Workspace>;

export const workspaceApi = contract({
  createWorkspace: {
    ...admin,
    method: "POST",
    path: "/admin/workspaces",
    summary: "Create a workspace, which groups projects",
    body: Type.Object({ name: DisplayName }),
    status: 201,
    reply: Workspace,
    errors: [400, 401],
  },
  listWorkspaces: {
    ...admin,
    method: "GET",
    path: "/admin/workspaces",
    summary: "List workspaces",
    status: 200,
    reply: Type.Array(Workspace),
    errors: [401],
  },
  renameWorkspace: {
    ...admin,
    method: "PATCH",
    path: "/admin/workspaces/{workspaceID}",
    summary: "Rename a workspace",
    params: byWorkspace,
    body: Type.Object({ name: DisplayName }),
    status: 200,
    reply: Workspace,
    errors: [400, 401, 404],
  },
  deleteWorkspace: {
    ...admin,
    method: "DELETE",
    path: "/admin/workspaces/{workspaceID}",
    summary: "Delete a workspace that has no projects",
    params: byWorkspace,
    status: 204,
    errors: [400, 401, 404, 409],
  },
});
