/** Routes for operators: nodes, keys, clean-up. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { Finding } from "../program/finding.ts";
import { nullable, Timestamp } from "./common.ts";
import { byTeam, CreatedTeamApiKey, NewKey, TeamApiKey } from "./teams.ts";
import { BuildStatus } from "./templates.ts";

export const NodeStatus = Type.Enum(["ready", "draining", "connecting", "unhealthy", "standby"]);
export type NodeStatus = Static<typeof NodeStatus>;

const Disk = Type.Object({
  mountPoint: Type.String(),
  device: Type.String(),
  filesystemType: Type.String(),
  usedBytes: Type.Integer(),
  totalBytes: Type.Integer(),
});

const nodeDetail = {
  id: Type.String(),
  serviceInstanceID: Type.String(),
  clusterID: Type.String(),
  version: Type.String(),
  commit: Type.String(),
  status: NodeStatus,
  statusChangedAt: Timestamp,
  sandboxCount: Type.Integer(),
  createSuccesses: Type.Integer(),
  createFails: Type.Integer(),
  metrics: Type.Object({
    allocatedCPU: Type.Integer(),
    allocatedMemoryBytes: Type.Integer(),
    cpuPercent: Type.Number(),
    cpuCount: Type.Integer(),
    memoryUsedBytes: Type.Integer(),
    memoryTotalBytes: Type.Integer(),
    disks: Type.Array(Disk),
    snapshotStoredBytes: Type.Integer({ description: "Memory and disks of snapshots and paused sandboxes" }),
    snapshotQuotaBytes: Type.Integer({ description: "Quota of stored snapshots in bytes; 0: no quota" }),
    diskPromisedBytes: Type.Integer({
      description: "Disk sizes of running and paused sandboxes, builds and the warm pool",
    }),
    diskUsedBytes: Type.Integer({ description: "Bytes that these use, as last measured" }),
    diskFreeBytes: Type.Integer({ description: "Free bytes of the disk that sandboxes are on" }),
    diskReserveBytes: Type.Integer({ description: "Bytes of that disk that sandboxes leave free" }),
    hugePagesTotal: Type.Integer(),
    hugePagesUsed: Type.Integer(),
    hugePagesReserved: Type.Integer(),
    hugePageSizeBytes: Type.Integer(),
  }),
  capabilities: Type.Object(
    {
      memorySnapshots: Type.Boolean({ description: "Pause, fork and snapshot with memory, and starts from it" }),
      lazyPages: Type.Boolean({ description: "Large memory is restored page by page" }),
      ownDisks: Type.Boolean({ description: "Each sandbox has a disk image of its own, with a hard limit" }),
      volumes: Type.Boolean({ description: "Volumes can be kept and mounted" }),
      kernel: Type.String(),
      criu: Type.String(),
      runc: Type.String(),
      docker: Type.String(),
      details: Type.Record(Type.String(), Type.String(), { description: "How each is known, or why it is not there" }),
    },
    { description: "What the node can do, as it found by trying" },
  ),
  findings: Type.Array(Finding, {
    description: "What the node cannot do, and what stands in the way of its sandboxes, each with the way out",
  }),
  machineInfo: Type.Object({
    cpuFamily: Type.String(),
    cpuModel: Type.String(),
    cpuModelName: Type.String(),
    cpuArchitecture: Type.String(),
  }),
};

export const NodeDetail = Type.Object(nodeDetail);
export type NodeDetail = Static<typeof NodeDetail>;
const Node = Type.Object({ ...nodeDetail, sandboxStartingCount: Type.Integer() });

const admin = { tag: "Admin", access: "admin" } as const;
const clusterQuery = Type.Object({ clusterID: Type.Optional(Type.String({ format: "uuid" })) });
const byNode = Type.Object({ nodeID: Type.String({ minLength: 1, maxLength: 64 }) });

export const nodesApi = contract({
  listNodes: {
    ...admin,
    method: "GET",
    path: "/nodes",
    summary: "List nodes",
    query: clusterQuery,
    status: 200,
    reply: Type.Array(Node),
    errors: [401],
  },
  getNode: {
    ...admin,
    method: "GET",
    path: "/nodes/{nodeID}",
    summary: "Read a node",
    params: byNode,
    query: clusterQuery,
    status: 200,
    reply: NodeDetail,
    errors: [401, 404],
  },
  setNodeStatus: {
    ...admin,
    method: "POST",
    path: "/nodes/{nodeID}",
    summary: "Drain a node, stand it by, or take it back",
    params: byNode,
    body: Type.Object({ clusterID: Type.Optional(Type.String({ format: "uuid" })), status: NodeStatus }),
    status: 204,
    errors: [400, 401, 404, 409],
  },
});

const HeldItem = Type.Object({
  snapshotID: Type.String(),
  sandboxID: Type.String(),
  kind: Type.Enum(["pause", "checkpoint"]),
  bytes: Type.Integer({ description: "Memory and disk" }),
  heldSince: Timestamp,
  heldUntil: Timestamp,
  reason: Type.String(),
});

const Adopted = Type.Object({
  imported: Type.Integer({ description: "Sandboxes that the database had no record of" }),
  corrected: Type.Integer({ description: "Sandboxes that the database had in another state" }),
  unchanged: Type.Integer(),
  left: Type.Array(Type.String(), {
    description: "Snapshots to start from whose records cannot be made again: the node holds them, then deletes them",
  }),
  incomplete: Type.Array(Type.String(), {
    description: "Imported sandboxes whose options the node does not know: they resume without access to the internet",
  }),
});

const project = Type.Optional(
  Type.String({ description: "The project of sandboxes whose own is not in the database; default: the oldest one" }),
);

export const nodeStoreApi = contract({
  getNodeStore: {
    ...admin,
    method: "GET",
    path: "/nodes/{nodeID}/store",
    summary: "Whether a node serves this database, and what it holds that no record names",
    params: byNode,
    status: 200,
    reply: Type.Object({
      serves: Type.Boolean(),
      refusal: nullable(Type.String()),
      sandboxes: Type.Integer({ description: "Running and paused sandboxes on the node" }),
      snapshots: Type.Integer({ description: "Snapshots to start from on the node" }),
      held: Type.Array(HeldItem),
    }),
    errors: [401, 404, 503],
  },
  adoptNode: {
    ...admin,
    method: "POST",
    path: "/nodes/{nodeID}/adopt",
    summary: "Take the sandboxes of a node into this database, as the node has them; the node serves it from then on",
    params: byNode,
    body: Type.Object({ projectID: project }),
    optionalBody: true,
    status: 200,
    reply: Adopted,
    errors: [400, 401, 404, 503],
  },
  discardNode: {
    ...admin,
    method: "POST",
    path: "/nodes/{nodeID}/discard",
    summary: "Let a node serve this database; what it does not know is held for a time, then deleted",
    params: byNode,
    status: 204,
    errors: [401, 404, 503],
  },
  takeBack: {
    ...admin,
    method: "POST",
    path: "/nodes/{nodeID}/held/{heldID}",
    summary: "Take a paused sandbox back that its node holds, by the id of the sandbox or of the snapshot",
    params: Type.Object({ ...byNode.properties, heldID: Type.String({ minLength: 1, maxLength: 64 }) }),
    body: Type.Object({ projectID: project }),
    optionalBody: true,
    status: 200,
    reply: Adopted,
    errors: [400, 401, 404, 503],
  },
});

export const adminApi = contract({
  killTeamSandboxes: {
    ...admin,
    method: "POST",
    path: "/admin/teams/{teamID}/sandboxes/kill",
    summary: "Kill every sandbox of a project",
    params: byTeam,
    status: 200,
    reply: Type.Object({ killedCount: Type.Integer(), failedCount: Type.Integer() }),
    errors: [400, 401, 404],
  },
  runningCounts: {
    ...admin,
    method: "GET",
    path: "/admin/sandboxes/running-counts",
    summary: "Running sandboxes by project; projects without any are left out",
    status: 200,
    reply: Type.Record(Type.String(), Type.Integer()),
    errors: [401],
  },
  cancelBuilds: {
    ...admin,
    method: "POST",
    path: "/admin/teams/{teamID}/builds/cancel",
    summary: "Cancel every running build of a project",
    params: byTeam,
    status: 200,
    reply: Type.Object({ cancelledCount: Type.Integer(), failedCount: Type.Integer() }),
    errors: [400, 401, 404],
  },
  collectBuilds: {
    ...admin,
    method: "POST",
    path: "/admin/builds/collect",
    summary:
      "Remove builds that nothing needs, and uploaded files that no build needs; a dry run unless `dryRun` is false",
    body: Type.Object({
      dryRun: Type.Optional(Type.Boolean({ default: true })),
      keepHours: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 87_600,
          description: "Younger ones stay; default: the platform's setting",
        }),
      ),
    }),
    optionalBody: true,
    status: 200,
    reply: Type.Object({
      dryRun: Type.Boolean(),
      builds: Type.Array(
        Type.Object({
          buildID: Type.String(),
          templateID: Type.String(),
          status: BuildStatus,
          nodeID: nullable(Type.String()),
          createdAt: Timestamp,
        }),
      ),
      files: Type.Object({ count: Type.Integer(), bytes: Type.Integer() }),
    }),
    errors: [400, 401],
  },
  promoteTemplate: {
    ...admin,
    method: "POST",
    path: "/admin/templates/promote",
    summary: "Give a template a name that every project can use, publish it, and keep it warm",
    body: Type.Object({
      templateID: Type.String({ minLength: 1, maxLength: 128 }),
      name: Type.String({ pattern: "^[a-z0-9_-]{1,128}$", examples: ["code-interpreter-v1"] }),
    }),
    status: 204,
    errors: [400, 401, 404],
  },
  listTeamKeys: {
    ...admin,
    method: "GET",
    path: "/admin/teams/{teamID}/api-keys",
    summary: "List the API keys of a project, masked",
    params: byTeam,
    status: 200,
    reply: Type.Array(TeamApiKey),
    errors: [400, 401, 404],
  },
  createTeamKey: {
    ...admin,
    method: "POST",
    path: "/admin/teams/{teamID}/api-keys",
    summary: "Create an API key for a project",
    params: byTeam,
    body: NewKey,
    status: 201,
    reply: CreatedTeamApiKey,
    errors: [400, 401, 404],
  },
  deleteTeamKey: {
    ...admin,
    method: "DELETE",
    path: "/admin/teams/{teamID}/api-keys/{apiKeyID}",
    summary: "Revoke an API key of a project, at once",
    params: Type.Object({ ...byTeam.properties, apiKeyID: Type.String({ format: "uuid" }) }),
    status: 204,
    errors: [400, 401, 404],
  },
});
