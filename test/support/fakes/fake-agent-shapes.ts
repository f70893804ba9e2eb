/** The shapes of a fake agent: the options of its start, the orders that a test gives it, and what the test sees of it. */

import type { Peering } from "../../../agent/joining/peering.ts";
import type { Serving } from "../../../agent/serving/serving.ts";
import type {
  Arrival,
  CollectBlobs,
  ExitReport,
  FetchImageBody,
  Garbage,
  Heartbeat,
  HeartbeatReply,
  MetricSample,
  NetworkCheck,
  NetworkLog,
  NodeFacts,
  Offer,
  Peer,
  PoolTarget,
  StartRequest,
  StoredSnapshot,
} from "../../../shared/agent-api/routes.ts";
import type { LogEntry } from "../../../shared/agent-api/sandbox-log.ts";
import type { CheckSnapshotBody, SnapshotCheck } from "../../../shared/agent-api/snapshot-check-shapes.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import type { MachineReport } from "../../../shared/program/finding.ts";
import type { FakeBuilds } from "./fake-agent-builds.ts";
import type { Standing } from "./fake-heartbeat.ts";
import type { FakeVolumes } from "./fake-volumes.ts";

export interface Started extends Standing {
  readonly executionId: string;
  readonly body: StartRequest;
  /** The policy of the start request, or the one that has replaced it since. */
  egress: EgressPolicy;
  endAt: number;
  readonly startedAt: number;
}

export interface SnapshotRequest {
  readonly executionId: string;
  readonly snapshotId: string;
  readonly memory: boolean;
  readonly frozen?: boolean | undefined;
  /** Of a fork. */
  readonly copies?: number | undefined;
}

interface FetchRequest {
  readonly snapshotId: string;
  readonly ref: string;
  readonly projectId: string;
  readonly memory: boolean;
  readonly peer?: Peer | undefined;
}

export interface FakeAgent extends FakeBuilds {
  readonly nodeId: string;
  readonly tokens: Pick<FakeAgentOptions, "nodeToken" | "orchestratorToken">;
  readonly url: string;
  /** The running executions, by execution id. */
  readonly live: Map<string, Started>;
  /** The stored snapshots, by snapshot id. */
  readonly snapshots: Map<string, StoredSnapshot>;
  readonly volumes: FakeVolumes;
  /** The snapshots that the node has removed, by request or by a reply, in order. */
  readonly removed: string[];
  /** Every requested start, in order. */
  readonly starts: Started[];
  /** The executions that a request has stopped, in order. */
  readonly stops: string[];
  /**
   * The executions that replies to reports have ordered the node to stop. An execution that a request stops while a report is
   * on its way can be here as well.
   */
  readonly stopsByReply: string[];
  /** The executions and snapshots that replies to reports have ordered the node to hold. */
  readonly holds: string[];
  /** Which store it serves, decided as a real agent decides. */
  readonly serving: Serving;
  readonly replies: HeartbeatReply[];
  pools(): readonly PoolTarget[];
  /** Replaces the work of a start; call `run` for the usual work. */
  onStart: (start: Started, run: () => void) => Promise<void> | void;
  onStop: (executionId: string) => Promise<void> | void;
  /** Replace the work of a pause and of a checkpoint; call `take` for the usual work. */
  onPause: (request: SnapshotRequest, take: () => void) => Promise<void> | void;
  onCheckpoint: (request: SnapshotRequest, take: () => void) => Promise<void> | void;
  onRemove: (snapshotId: string) => Promise<void> | void;
  /** What it was to keep of the blob store, for each collection. */
  readonly collections: CollectBlobs[];
  /** The snapshots of other nodes that it was to fetch, in order, and the answer to each. */
  readonly fetches: FetchRequest[];
  onFetch: (request: FetchRequest) => Promise<Arrival> | Arrival;
  /** Answers how far it has described a snapshot for other nodes. */
  onOffer: (snapshotId: string) => Promise<Offer> | Offer;
  /** The same of an image of Docker. */
  onImageOffer: (image: string) => Promise<Offer> | Offer;
  /** The images of other nodes that it was to fetch, in order, and the answer to each. */
  readonly imageFetches: FetchImageBody[];
  onImageFetch: (wanted: FetchImageBody) => Promise<Arrival> | Arrival;
  /** The checks of snapshots that it was asked about, and cancelled ones. */
  readonly snapshotChecks: { readonly asked: SnapshotCheckRequest[]; readonly cancelled: string[] };
  onSnapshotCheck: (request: SnapshotCheckRequest) => Promise<SnapshotCheck> | SnapshotCheck;
  /** Answers what the node could remove. */
  onGarbage: () => Promise<Garbage> | Garbage;
  onExamine: () => Promise<MachineReport> | MachineReport;
  /** The sizes of the snapshots that are taken from now on. */
  sizes: { readonly memoryBytes: number; readonly diskBytes: number };
  /** Replaces the work of a new policy; call `set` for the usual work. */
  onEgress: (policy: EgressPolicy, set: () => void) => Promise<void> | void;
  trust: "applied" | "not applied";
  /** Answers a question about a flow; `checks` has the questions. */
  onCheck: (policy: EgressPolicy) => NetworkCheck;
  readonly checks: object[];
  networkLog: NetworkLog;
  /** Pauses a sandbox as the node does when its time ends while the orchestrator is away. */
  pauseByItself(executionId: string, snapshotId?: string): string;
  checkpointByItself(executionId: string, snapshotId: string): void;
  metrics: MetricSample[];
  logs: LogEntry[];
  /** Values that replace the usual ones in the next reports. */
  load: Partial<Heartbeat["load"]>;
  /** What this node reports of itself beside the options of all. */
  facts?: Partial<NodeFacts>;
  /** Sends a report now, and carries out the stops and ends of the reply. */
  beat(): Promise<HeartbeatReply>;
  reportExit(
    executionId: string,
    reason: ExitReport["reason"],
    more?: Pick<ExitReport, "exitCode" | "detail">,
  ): Promise<void>;
  stop(): Promise<void>;
}

interface SnapshotCheckRequest extends CheckSnapshotBody {
  readonly snapshotId: string;
  readonly checkId: string;
}

export interface FakeAgentOptions {
  readonly orchestratorUrl: string;
  /** The token that the fake agent shows to the orchestrator. */
  readonly nodeToken: string;
  /** The token that the fake agent demands from the orchestrator. */
  readonly orchestratorToken: string;
  readonly nodeId?: string;
  /** How a node that has joined meets its platform; absent: it is on the orchestrator's machine. */
  readonly peering?: Peering;
  readonly facts?: Partial<NodeFacts>;
  readonly load?: Partial<Heartbeat["load"]>;
  /** The address that every sandbox gets, where a fake envd may listen. */
  readonly address?: string;
  readonly proxyUrl?: string;
  /** The interval of reports; with 0 the agent reports only when `beat` is called. */
  readonly heartbeatMs?: number;
}
