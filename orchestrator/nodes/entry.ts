/** Holds what this orchestrator knows of one node: its last report, the status that an operator wants, and the counts of placements. */

import type { agentApi, Heartbeat, NodeFacts, NodeLoad } from "../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../shared/api/nodes/nodes.ts";
import type { Connection } from "../../shared/http/client.ts";
import type { AppError } from "../../shared/http/errors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { StartError } from "../store/nodes/happening-record.ts";
import type { NodeRecord, ReportedLoad, SnapshotUpload } from "../store/nodes/record.ts";
import type { Candidate } from "./placement/candidate.ts";
import { NOTHING, type Sum, withPromised } from "./promised.ts";

/** What a node reports of itself. */
export type Report = Pick<Heartbeat, "node" | "load"> & Partial<Pick<Heartbeat, "snapshots">>;

export interface Entry {
  facts: NodeFacts;
  load: ReportedLoad;
  /** Of the load: the builds whose images it has. */
  images: ReadonlySet<string>;
  wanted: NodeRecord["wanted"];
  status: NodeStatus;
  statusChangedAt: number;
  lastHeardAt: number;
  /** The same by the monotonic time of this process, by which silence is measured: a clock that is set makes no node silent. */
  heardAt: number;
  createSuccesses: number;
  createFails: number;
  /** The newest first. */
  lastErrors: readonly StartError[];
  placing: Sum;
  connection: Connection<typeof agentApi>;
  /** The key of the token that the connection shows. */
  keyId: string | undefined;
  /** Why the node refuses this store. */
  refusal: string | undefined;
  unreached: readonly Finding[];
  /** The report in the node's row that this process has written or read; undefined: the node has no row yet. */
  row: { readonly heartbeatAt: number; readonly writtenAt: number; readonly says: string } | undefined;
}

/** A report, from the node or as another orchestrator has recorded it. */
export type Learned = Pick<Entry, "facts" | "load" | "keyId" | "refusal" | "lastHeardAt"> &
  Partial<Pick<Entry, "unreached">>;

/** What a process tells the time by: its clock, which may be set, and milliseconds that never jump. */
interface Time {
  readonly now: () => number;
  readonly elapsed: () => number;
}

/**
 * A report that another process has recorded was made before it is read. The node is no more silent by it than it was, also when the
 * database's clock was set ahead since it was recorded.
 */
export function heardAtOf(
  { lastHeardAt }: Pick<Learned, "lastHeardAt">,
  { now, elapsed }: Time,
  known?: Pick<Entry, "heardAt">,
): number {
  return Math.max(known?.heardAt ?? Number.NEGATIVE_INFINITY, elapsed() - Math.max(0, now() - lastHeardAt));
}

/** Of a node that this orchestrator has not known before. */
export function firstEntry(
  learned: Learned,
  { wanted, time, connection }: Pick<Entry, "wanted" | "connection"> & { readonly time: Time },
): Entry {
  return {
    unreached: [],
    ...learned,
    heardAt: heardAtOf(learned, time),
    images: imagesOf(learned.load),
    wanted,
    status: "connecting",
    statusChangedAt: time.now(),
    createSuccesses: 0,
    createFails: 0,
    lastErrors: [],
    placing: NOTHING,
    connection,
    row: undefined,
  };
}

/** When an orchestrator has looked at a node, and what it counts as silence. */
interface Look {
  /** As `heardAt`. */
  readonly at: number;
  readonly startedAt: number;
  readonly nodeTimeoutMs: number;
}

export function statusAt(entry: Entry, { at, startedAt, nodeTimeoutMs }: Look): NodeStatus {
  const { wanted, heardAt, refusal } = entry;
  const silentSince = Math.max(heardAt, startedAt);
  if (at - silentSince > nodeTimeoutMs) return "unhealthy";
  if (at - heardAt > nodeTimeoutMs) return "connecting";
  if (refusal !== undefined) return "unhealthy";
  if (entry.unreached.length > 0) return "connecting";
  return wanted;
}

/** Why the node is away, for people; undefined: it is not. */
export function whyAway(
  { heardAt, lastHeardAt, refusal, unreached }: Entry,
  { at, nodeTimeoutMs }: Look,
): string | undefined {
  if (at - heardAt > nodeTimeoutMs) return `it has not reported since ${new Date(lastHeardAt).toISOString()}`;
  if (refusal !== undefined) return refusal;
  return unreached.length === 0 ? undefined : unreached.map(({ problem }) => problem).join("; ");
}

export interface NodeView {
  readonly id: string;
  readonly facts: NodeFacts;
  readonly load: ReportedLoad;
  readonly status: NodeStatus;
  readonly statusChangedAt: number;
  readonly lastHeardAt: number;
  readonly createSuccesses: number;
  readonly createFails: number;
  readonly lastErrors: readonly StartError[];
  readonly starting: number;
  /** Why the node refuses this store; undefined: it serves it. */
  readonly refusal: string | undefined;
  /** Which of its addresses this orchestrator does not reach. */
  readonly unreached: readonly Finding[];
  /** The builds whose images it has, by its last report. */
  readonly images: ReadonlySet<string>;
}

export function toView(entry: Entry): NodeView {
  const {
    facts,
    load,
    images,
    status,
    statusChangedAt,
    lastHeardAt,
    createSuccesses,
    createFails,
    lastErrors,
    refusal,
    unreached,
  } = entry;
  return {
    id: facts.nodeId,
    facts,
    load,
    images,
    status,
    statusChangedAt,
    lastHeardAt,
    createSuccesses,
    createFails,
    lastErrors,
    refusal,
    unreached,
    starting: Math.max(entry.placing.count, load.sandboxStartingCount),
  };
}

export const MOST_ERRORS = 5;
const MOST_CHARACTERS = 500;

/** Counts a start that failed, and keeps why. */
export function noteFailure(entry: Entry, at: number, { code, message }: AppError): void {
  const error = { at, code, message: message.slice(0, MOST_CHARACTERS) };
  entry.createFails++;
  entry.lastErrors = [error, ...entry.lastErrors].slice(0, MOST_ERRORS);
}

/** The builds whose images a node has. */
export function imagesOf({ images = [] }: NodeLoad): ReadonlySet<string> {
  return new Set(images.map(({ buildId }) => buildId));
}

/** Uploads that are kept of a report: while the blob store is away, each snapshot of the node has one that failed. */
const MOST_UPLOADS = 500;

/** The load of a report, with the uploads of snapshots that are under way or have failed. */
export function loadOf({ load, snapshots = [] }: Report): ReportedLoad {
  const uploads = snapshots.flatMap(({ snapshotId, stored }): SnapshotUpload[] => {
    if (stored === undefined || "ref" in stored) return [];
    if ("failure" in stored) return [{ snapshotId, doneBytes: 0, totalBytes: 0, failure: stored.failure }];
    return [{ snapshotId, ...stored }];
  });
  return uploads.length === 0 ? load : { ...load, uploads: uploads.slice(0, MOST_UPLOADS) };
}

/** Why packets of sandboxes do not leave the node; empty: they do. */
export function networkProblems({ findings = [] }: NodeLoad): string {
  return findings
    .filter(({ id }) => id.startsWith("network."))
    .map(({ problem, evidence }) => `${problem}: ${evidence}`)
    .join("; ");
}

export function toCandidate({ facts, load, status, placing, refusal, unreached }: Entry): Candidate {
  return {
    id: facts.nodeId,
    status,
    labels: facts.labels,
    cpuCount: load.cpuCount,
    cpuPercent: load.cpuPercent,
    memoryTotalBytes: load.memoryTotalBytes,
    allocatedCpu: load.allocatedCpu + placing.cpu,
    allocatedMemoryBytes: load.allocatedMemoryBytes + placing.memoryBytes,
    sandboxCount: load.sandboxCount + placing.count,
    maxSandboxes: facts.maxSandboxes,
    noMemory: facts.capabilities.memorySnapshots
      ? undefined
      : (facts.capabilities.detail["memorySnapshots"] ?? "it does not say why"),
    noNetwork: load.networkRefused === true ? networkProblems(load) : undefined,
    disk: withPromised(load.sandboxDisk, placing.diskBytes),
    pools: load.pools,
    ...(refusal === undefined ? {} : { refuses: true }),
    ...(unreached.length === 0 ? {} : { unreached: true }),
  };
}

/**
 * The load of a node's row, as an orchestrator finds it at its start. One that is alone keeps the time of hearing without the report
 * (`keepTimes`), so the time at which the report was sent says nothing of the node's clock.
 */
export function loadOfRow(load: ReportedLoad, alone: boolean): ReportedLoad {
  const { at: _at, ...more } = load;
  return alone ? more : load;
}

/** Returns the part of a report that other orchestrators need at once, and that is the same in most reports. */
export function lasting({ facts, load, keyId, refusal }: Entry): string {
  const {
    at: _at,
    cpuPercent: _,
    memoryUsedBytes: _used,
    sandboxDisk,
    disks: _disks,
    images,
    uploads: _uploads,
    ...rest
  } = load;
  const disk = sandboxDisk && { promised: sandboxDisk.promisedBytes, short: sandboxDisk.short };
  // Not how far an upload is.
  const held = images?.map(({ buildId }) => buildId);
  return JSON.stringify([facts, rest, disk, held, keyId, refusal]);
}
