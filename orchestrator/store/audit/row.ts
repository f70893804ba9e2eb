/** The tables of the audit log. */

/** One entry. No entry is changed; only a prefix of the whole log is ever deleted. */
export interface AuditRow {
  /** From 1, without gaps. */
  readonly seq: number;
  /** Never before the time of the entry before it, also when the clock is set back. */
  readonly at: number;
  /** Null: the entry is about the platform, not about one project. */
  readonly project_id: string | null;
  readonly actor_kind: AuditActor;
  /** Id of the API key or the node. */
  readonly actor_id: string | null;
  /** The API key with its middle left out. */
  readonly actor_mask: string | null;
  /** Name of the route in the API's description, or of what the platform did by itself. */
  readonly action: string;
  readonly object_kind: string | null;
  readonly object_id: string | null;
  readonly result: AuditResult;
  /** Of the answer; null in an entry that was written with its change, before there was an answer. */
  readonly status: number | null;
  readonly error_code: string | null;
  readonly address: string | null;
  readonly request_id: string | null;
  /** `seq` of the entry that the same request wrote with its first change. */
  readonly refers_to: number | null;
  /** JSON: harmless fields of the request and the answer, or the reason. */
  readonly details: string | null;
  readonly previous_hash: string;
  readonly hash: string;
}

export type AuditActor = "key" | "admin" | "person" | "node" | "open" | "platform";

/** `begun`: the first change of a request that makes several; the entry of its end refers to it. */
export type AuditResult = "begun" | "done" | "refused" | "failed";

/** The last entry that was deleted because of its age; the chain begins after it. One row, or none. */
export interface AuditAnchorRow {
  readonly id: 1;
  readonly seq: number;
  readonly hash: string;
  /** Time of the deletion. */
  readonly at: number;
}
