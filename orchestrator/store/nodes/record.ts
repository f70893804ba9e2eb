/** The table of nodes: the last report of each. */

import type { NodeFacts, NodeLoad } from "../../../shared/agent-api/routes.ts";
import { json, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const nodeTable = table(
  {
    facts: json("facts").as<NodeFacts>(),
    load: json("load").as<NodeLoad>(),
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
  },
);

export type NodeRecord = RecordOf<typeof nodeTable>;
export type NodeRow = RowOf<typeof nodeTable>;
