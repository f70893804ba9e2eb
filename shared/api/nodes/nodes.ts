/** Routes for operators about nodes: their status, what is on them, and the database that they serve. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { Finding } from "../../program/finding.ts";
import { nullable, TeamId, Timestamp } from "../common.ts";
import { NodeEvent } from "./node-events.ts";

export const NodeStatus = Type.Enum(["ready", "draining", "connecting", "unhealthy", "standby"]);
export type NodeStatus = Static<typeof NodeStatus>;

const Disk = Type.Object({
  mountPoint: Type.String(),
  device: Type.String(),
  filesystemType: Type.String(),
  usedBytes: Type.Integer(),
  totalBytes: Type.Integer(),
});

const nodeFields = {
  id: Type.String(),
  serviceInstanceID: Type.String(),
  clusterID: Type.String(),
  version: Type.String(),
  commit: Type.String(),
  status: NodeStatus,
  statusChangedAt: Timestamp,
  apiURL: Type.String({ description: "Where this orchestrator reaches the node's agent" }),
  proxyURL: Type.String({ description: "Where edges reach its sandboxes" }),
  region: nullable(Type.String()),
  labels: Type.Record(Type.String(), Type.String()),
  lastHeardAt: Timestamp,
  clockSkewMs: nullable(
    Type.Integer({
      description: "How far its clock is ahead of the orchestrator's, less the way of the report; null: an older agent",
    }),
  ),
  leaseEndsAt: nullable(
    Type.String({
      format: "date-time",
      description:
        "When its sandboxes stand still at the latest, unless an orchestrator answers another report; null: it has no lease",
    }),
  ),
  maxSandboxes: Type.Integer(),
  pools: Type.Array(Type.Object({ buildID: Type.String(), ready: Type.Integer(), wanted: Type.Integer() }), {
    description: "Containers that wait for a sandbox",
  }),
  sandboxCount: Type.Integer(),
  buildCount: nullable(
    Type.Integer({ description: "Builds of templates that it works on; null: the database does not answer now" }),
  ),
  createSuccesses: Type.Integer({
    description: "Starts there since the start of the orchestrators that run; those of other ones some seconds late",
  }),
  createFails: Type.Integer({ description: "Of these, starts that failed there" }),
  lastErrors: Type.Array(Type.Object({ at: Timestamp, errorCode: Type.String(), message: Type.String() }), {
    description: "Why the last five failed, the newest first",
  }),
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
      blobStore: Type.Boolean({ description: "It has the platform's blob store" }),
      peers: Type.Boolean({ description: "Other nodes read from it, and it from them" }),
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

const NodeFields = Type.Object(nodeFields);
/** What a list and a read of a node have in common. */
export type NodeDetail = Static<typeof NodeFields>;
const NodeRead = Type.Object({
  ...nodeFields,
  cachedBuilds: Type.Array(Type.String(), {
    description: "Builds of templates whose images it has, by its last report",
  }),
  events: nullable(
    Type.Array(NodeEvent, {
      description:
        "The last 50 things that happened to it, the newest first, the same at each orchestrator; null: the database does not answer now",
    }),
  ),
});
export type NodeRead = Static<typeof NodeRead>;
const Node = Type.Object({
  ...nodeFields,
  sandboxStartingCount: Type.Integer(),
  placement: Type.Optional(
    Type.Object(
      {
        fits: Type.Boolean(),
        score: Type.Optional(Type.Number({ description: "The lowest of three random nodes that fit is taken" })),
        reason: Type.Optional(Type.String({ description: "Why the node is passed over, as a clause about it" })),
        lacks: Type.Optional(
          Type.Array(Type.String(), {
            description:
              "Why a restore of the template's memory may be refused there, each as a clause about the node: it differs from the node that has it now, and decides by the snapshot itself",
          }),
        ),
      },
      {
        description: "What the node is to a sandbox of the template that `explain` names, with access to the internet",
      },
    ),
  ),
});

const admin = { tag: "Admin", access: "admin" } as const;
const clusterQuery = Type.Object({ clusterID: Type.Optional(Type.String({ format: "uuid" })) });
const byNode = Type.Object({ nodeID: Type.String({ minLength: 1, maxLength: 64 }) });

export const NodeContents = Type.Object(
  {
    sandboxes: Type.Integer({ description: "Sandboxes that run, start or are being paused there" }),
    pausedSandboxes: Type.Integer(),
    snapshots: Type.Integer(),
    volumes: Type.Integer(),
    templates: Type.Integer({
      description: "Builds whose images are there: their records stay, and the templates have to be built again",
    }),
    inStore: Type.Object(
      { pausedSandboxes: Type.Integer(), snapshots: Type.Integer(), templates: Type.Integer() },
      { description: "How many of these are in the blob store: they outlive the node, and start on another one" },
    ),
  },
  { description: "What is on the node, and is lost with it where it is not in the blob store" },
);
export type NodeContents = Static<typeof NodeContents>;

export const nodesApi = contract({
  listNodes: {
    ...admin,
    method: "GET",
    path: "/nodes",
    summary: "List nodes; with `explain`, in the order of placement and with the reason of each that is passed over",
    query: Type.Object({
      ...clusterQuery.properties,
      explain: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: "Id of a template, or of a snapshot's template: where a sandbox of it would be placed",
        }),
      ),
      teamID: Type.Optional({
        ...TeamId,
        description: "With `explain`: whose sandbox it is, by whose region and node labels nodes are judged",
      }),
    }),
    status: 200,
    reply: Type.Array(Node),
    errors: [401, 404],
  },
  getNode: {
    ...admin,
    method: "GET",
    path: "/nodes/{nodeID}",
    summary: "Read a node",
    params: byNode,
    query: clusterQuery,
    status: 200,
    reply: NodeRead,
    errors: [401, 404],
  },
  setNodeStatus: {
    ...admin,
    method: "POST",
    path: "/nodes/{nodeID}",
    summary: "Cordon a node (`draining`: no new sandbox), stand it by, or take it back, which ends its drain",
    params: byNode,
    body: Type.Object({ clusterID: Type.Optional(Type.String({ format: "uuid" })), status: NodeStatus }),
    status: 204,
    errors: [400, 401, 404, 409],
  },
  removeNode: {
    ...admin,
    method: "DELETE",
    path: "/nodes/{nodeID}",
    summary: "Remove a node from the platform; 409 names what is on it",
    params: byNode,
    query: Type.Object({
      force: Type.Optional(
        Type.Boolean({
          description: "Removes it with what is on it: sandboxes end (`node_lost`), the rest is deleted",
        }),
      ),
    }),
    status: 200,
    reply: NodeContents,
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
