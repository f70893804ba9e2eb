/** What a test sees of a fake agent, orders from it and starts it with. */

import type {
  ExitReport,
  Heartbeat,
  HeartbeatReply,
  MetricSample,
  NetworkCheck,
  NetworkLog,
  NodeFacts,
  PoolTarget,
  StartBody,
  StoredSnapshot,
} from "../../../shared/agent-api/routes.ts";
import type { LogEntry } from "../../../shared/agent-api/sandbox-log.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import type { FakeBuilds } from "./fake-agent-builds.ts";
import type { Standing } from "./fake-heartbeat.ts";

export interface Started extends Standing {
  readonly executionId: string;
  readonly body: StartBody;
  /** Of its start, or as it was replaced since. */
  egress: EgressPolicy;
  endAt: number;
  readonly startedAt: number;
}

export interface SnapshotRequest {
  readonly executionId: string;
  readonly snapshotId: string;
  readonly memory: boolean;
}

export interface FakeAgent extends FakeBuilds {
  readonly nodeId: string;
  readonly url: string;
  /** What runs, by execution id. */
  readonly live: Map<string, Started>;
  /** What is stored, by snapshot id. */
  readonly snapshots: Map<string, StoredSnapshot>;
  /** Snapshots the orchestrator had removed, in order. */
  readonly removed: string[];
  /** Every start that was asked for, in order. */
  readonly starts: Started[];
  readonly stops: string[];
  readonly replies: HeartbeatReply[];
  pools(): readonly PoolTarget[];
  /** Replaces what a start does; call `run` for the usual. */
  onStart: (start: Started, run: () => void) => Promise<void> | void;
  onStop: (executionId: string) => Promise<void> | void;
  /** Replace what a pause and a checkpoint do; call `take` for the usual. */
  onPause: (request: SnapshotRequest, take: () => void) => Promise<void> | void;
  onCheckpoint: (request: SnapshotRequest, take: () => void) => Promise<void> | void;
  onRemove: (snapshotId: string) => Promise<void> | void;
  /** Replaces what a new policy does; call `set` for the usual. */
  onEgress: (policy: EgressPolicy, set: () => void) => Promise<void> | void;
  trust: "applied" | "not applied";
  /** Answers a question about a flow; what was asked is in `checks`. */
  onCheck: (policy: EgressPolicy) => NetworkCheck;
  readonly checks: object[];
  networkLog: NetworkLog;
  /** As at a sandbox's end while the orchestrator is away. */
  pauseByItself(executionId: string, snapshotId?: string): string;
  checkpointByItself(executionId: string, snapshotId: string): void;
  metrics: MetricSample[];
  logs: LogEntry[];
  /** Sends a report now. Stops and ends of the reply are carried out. */
  beat(): Promise<HeartbeatReply>;
  reportExit(executionId: string, reason: ExitReport["reason"]): Promise<void>;
  stop(): Promise<void>;
}

export interface FakeAgentOptions {
  readonly orchestratorUrl: string;
  /** What it shows. */
  readonly nodeToken: string;
  /** What it asks to be shown. */
  readonly orchestratorToken: string;
  readonly nodeId?: string;
  readonly facts?: Partial<NodeFacts>;
  readonly load?: Partial<Heartbeat["load"]>;
  /** Address every sandbox gets; where a fake envd may listen. */
  readonly address?: string;
  readonly proxyUrl?: string;
  /** 0: only when `beat` is called. */
  readonly heartbeatMs?: number;
}
