/** The table of nodes: the last report of each. */

import type { NodeFacts, NodeLoad } from "../../../shared/agent-api/routes.ts";
import { json, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

/** How far a node is with the upload of a snapshot. */
export interface SnapshotUpload {
  readonly snapshotId: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
  /** Why the last try failed. */
  readonly failure?: string;
}

/** With what else of a report every orchestrator needs. */
export type ReportedLoad = NodeLoad & { readonly uploads?: readonly SnapshotUpload[] };

export const nodeTable = table(
  {
    facts: json("facts").as<NodeFacts>(),
    load: json("load").as<ReportedLoad>(),
    /** The status that the operator set. */
    wanted: text("wanted").as<"ready" | "draining" | "standby">(),
    wantedAt: number("wanted_at"),
    lastHeartbeatAt: number("last_heartbeat_at"),
    /** The key of the token with which it last reported; undefined: the oldest key. */
    keyId: text("key_id").optional(),
    /** Why it refuses this store; undefined: it serves it. */
    refusal: text("refusal").later(),
  },
  {
    id: text("id"),
    firstSeenAt: number("first_seen_at"),
    /** Differences between its reports and the records, each with the time at which it was first seen. */
    suspicions: text("suspicions").later(),
    /** When it was noted that it counts as lost, by the clock of its reports; a later report ends that. */
    lostAt: number("lost_at").later(),
  },
);

export type NodeRecord = RecordOf<typeof nodeTable>;
export type NodeRow = RowOf<typeof nodeTable>;
