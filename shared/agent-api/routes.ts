/**
 * Orchestrator ↔ agent, both directions. Internal: objects are closed, because an old agent must refuse a new rule
 * rather than ignore it; only of reports new fields are ignored. Every answer about a sandbox carries its execution id.
 */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { EgressPolicy } from "../policy/egress-policy.ts";
import { MachineReport } from "../program/finding.ts";
import { Garbage } from "./blobs/garbage-shapes.ts";
import { BuildBody, BuildState } from "./build-shapes.ts";
import { NetworkCheck, NetworkLog } from "./network-shapes.ts";
import { Heartbeat, HeartbeatReply } from "./node-shapes.ts";
import { LogEntry } from "./sandbox-log.ts";
import { EgressReplaced, ExitReport, MetricSample, Started, StartRequest } from "./sandbox-shapes.ts";
import { closed, SnapshotId, time } from "./shapes.ts";
import { snapshotCheckRoutes } from "./snapshot-check-shapes.ts";
import { snapshotRoutes } from "./snapshot-routes.ts";
import { Holdings, StoreMark } from "./store-shapes.ts";
import { KeptVolume, VolumeBody } from "./volume-shapes.ts";

export * from "./blobs/garbage-shapes.ts";
export * from "./network-shapes.ts";
export * from "./node-shapes.ts";
export * from "./sandbox-shapes.ts";
export * from "./shapes.ts";
export * from "./snapshot-shapes.ts";
export * from "./store-shapes.ts";
export * from "./volume-shapes.ts";

const byBuild = Type.Object({ buildId: Type.String({ format: "uuid" }) }, closed);
const bySandbox = Type.Object({ sandboxId: Type.String({ pattern: "^[a-z0-9]{1,64}$" }) }, closed);
const byVolume = Type.Object({ volumeId: Type.String({ format: "uuid" }) }, closed);
const byExecution = Type.Object({ executionId: Type.String({ format: "uuid" }) }, closed);

/** Called by the orchestrator. Bearer: the orchestrator's token for this node (node-tokens.ts). */
export const agentApi = contract({
  startExecution: {
    method: "PUT",
    path: "/v1/executions/{executionId}",
    summary: "Start a sandbox here, from the warm pool if one fits; repeating it is harmless",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: StartRequest,
    status: 200,
    reply: Started,
  },
  stopExecution: {
    method: "DELETE",
    path: "/v1/executions/{executionId}",
    summary: "Kill a sandbox; its route and its streams end before the answer; an unknown sandbox is success",
    tag: "Executions",
    access: "node",
    params: byExecution,
    status: 204,
  },
  updateExecution: {
    method: "PATCH",
    path: "/v1/executions/{executionId}",
    summary: "Change the end of a running sandbox",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: Type.Object({ endAt: time }, closed),
    status: 204,
  },
  replaceEgress: {
    method: "PUT",
    path: "/v1/executions/{executionId}/egress",
    summary:
      "Replace the egress policy of a running sandbox, whole or not at all; forbidden flows end before the answer",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: EgressPolicy,
    status: 200,
    reply: EgressReplaced,
  },
  ...snapshotRoutes,
  ...snapshotCheckRoutes,
  holdings: {
    method: "GET",
    path: "/v1/holdings",
    summary: "Everything that the node keeps for sandboxes, and the store that it serves",
    tag: "Stores",
    access: "node",
    status: 200,
    reply: Holdings,
  },
  serveStore: {
    method: "PUT",
    path: "/v1/store",
    summary: "Serve this store from now on, whatever the node served before",
    tag: "Stores",
    access: "node",
    body: StoreMark,
    status: 204,
  },
  takeBackSnapshot: {
    method: "POST",
    path: "/v1/snapshots/{snapshotId}/take-back",
    summary: "Take a snapshot out of the holding place; one that is not held is success",
    tag: "Stores",
    access: "node",
    params: Type.Object({ snapshotId: SnapshotId }, closed),
    status: 204,
  },
  listGarbage: {
    method: "GET",
    path: "/v1/garbage",
    summary: "What is stored here and no record references; the node removes it when it is old enough",
    tag: "Observation",
    access: "node",
    status: 200,
    reply: Garbage,
  },
  examine: {
    method: "GET",
    path: "/v1/doctor",
    summary: "Run the checks of `svc doctor` on this machine; calls at the same time share one run",
    tag: "Observation",
    access: "node",
    status: 200,
    reply: MachineReport,
  },
  startBuild: {
    method: "PUT",
    path: "/v1/builds/{buildId}",
    summary: "Build a template here, in the background; repeating it is harmless",
    tag: "Builds",
    access: "node",
    params: byBuild,
    body: BuildBody,
    status: 202,
  },
  buildState: {
    method: "GET",
    path: "/v1/builds/{buildId}",
    summary: "State of a build, and its log from an offset; 404 when this node has no such build (any more)",
    tag: "Builds",
    access: "node",
    params: byBuild,
    query: Type.Object(
      { offset: Type.Integer({ minimum: 0 }), limit: Type.Integer({ minimum: 1, maximum: 1000 }) },
      closed,
    ),
    status: 200,
    reply: BuildState,
  },
  deleteBuild: {
    method: "DELETE",
    path: "/v1/builds/{buildId}",
    summary: "Cancel a build, or remove its image and snapshot; an unknown build is success",
    tag: "Builds",
    access: "node",
    params: byBuild,
    status: 204,
  },
  makeVolume: {
    method: "PUT",
    path: "/v1/volumes/{volumeId}",
    summary: "Make an empty volume here; repeating it is harmless",
    tag: "Volumes",
    access: "node",
    params: byVolume,
    body: VolumeBody,
    status: 204,
  },
  deleteVolume: {
    method: "DELETE",
    path: "/v1/volumes/{volumeId}",
    summary: "Delete a volume with its files; an unknown volume is success",
    tag: "Volumes",
    access: "node",
    params: byVolume,
    status: 204,
  },
  listVolumes: {
    method: "GET",
    path: "/v1/volumes",
    summary: "The volumes of this node",
    tag: "Volumes",
    access: "node",
    status: 200,
    reply: Type.Array(KeptVolume),
  },
  executionMetrics: {
    method: "GET",
    path: "/v1/executions/{executionId}/metrics",
    summary: "Samples between two times, oldest first",
    tag: "Observation",
    access: "node",
    params: byExecution,
    query: Type.Object({ start: Type.Optional(time), end: Type.Optional(time) }, closed),
    status: 200,
    reply: Type.Array(MetricSample),
  },
  latestMetrics: {
    method: "POST",
    path: "/v1/metrics",
    summary: "The newest sample of each execution that has one",
    tag: "Observation",
    access: "node",
    body: Type.Object({ executionIds: Type.Array(Type.String(), { maxItems: 1000 }) }, closed),
    status: 200,
    reply: Type.Record(Type.String(), MetricSample),
  },
  executionLogs: {
    method: "GET",
    path: "/v1/executions/{executionId}/logs",
    summary: "Log entries from a cursor",
    tag: "Observation",
    access: "node",
    params: byExecution,
    query: Type.Object(
      {
        /** Inclusive; absent = from the oldest (forward) or the newest (backward). */
        cursor: Type.Optional(time),
        limit: Type.Integer({ minimum: 0, maximum: 1000 }),
        direction: Type.Enum(["forward", "backward"]),
        level: Type.Optional(Type.Enum(["debug", "info", "warn", "error"])),
        search: Type.Optional(Type.String({ maxLength: 256 })),
      },
      closed,
    ),
    status: 200,
    reply: Type.Array(LogEntry),
  },
  checkNetwork: {
    method: "GET",
    path: "/v1/executions/{executionId}/network/check",
    summary: "Check whether a flow of a sandbox is allowed, with the code that decides real flows",
    tag: "Observation",
    access: "node",
    params: byExecution,
    query: Type.Object(
      {
        /** A name or an IPv4 address. */
        host: Type.String({ minLength: 1, maxLength: 253 }),
        port: Type.Integer({ minimum: 1, maximum: 65_535 }),
        protocol: Type.Enum(["tcp", "udp"]),
      },
      closed,
    ),
    status: 200,
    reply: NetworkCheck,
  },
  networkLog: {
    method: "GET",
    path: "/v1/sandboxes/{sandboxId}/network/log",
    summary: "Decisions about the sandbox's flows on this node, in all its executions, oldest first",
    tag: "Observation",
    access: "node",
    params: bySandbox,
    query: Type.Object(
      {
        /** Inclusive; absent = the newest ones. */
        cursor: Type.Optional(time),
        limit: Type.Integer({ minimum: 1, maximum: 1000 }),
      },
      closed,
    ),
    status: 200,
    reply: NetworkLog,
  },
});

/**
 * Called by agents on the orchestrator's API port. Bearer: the node's own token (node-tokens.ts), valid for its reports only. A report
 * orders nothing, and one that is refused would cost the node its sandboxes: fields of a later agent are left out.
 */
export const nodeApi = contract({
  heartbeat: {
    method: "POST",
    path: "/internal/nodes/heartbeat",
    summary: "Register the node and report its sandboxes, its snapshots and the room that is left",
    tag: "Nodes",
    access: "node",
    body: Heartbeat,
    ignoresLater: true,
    status: 200,
    reply: HeartbeatReply,
  },
  reportExits: {
    method: "POST",
    path: "/internal/nodes/{nodeId}/exits",
    summary: "Report sandboxes that ended by themselves, at once; repeating it is harmless",
    tag: "Nodes",
    access: "node",
    params: Type.Object({ nodeId: Type.String() }, closed),
    body: Type.Object({ exits: Type.Array(ExitReport) }, closed),
    ignoresLater: true,
    status: 204,
  },
});
