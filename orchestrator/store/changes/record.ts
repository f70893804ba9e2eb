/** The rows of changes, as Kysely sees them. */

/** What another orchestrator may have in its memory: an API key by its hash, a project, sandbox, node or build by its id. */
export type Kind = "key" | "project" | "sandbox" | "node" | "build";

interface ChangeRow {
  readonly id: string;
  readonly kind: Kind;
  readonly subject: string;
  /** The orchestrator that made it, and has forgotten by itself what it knew. */
  readonly origin: string;
  readonly at: number;
  /** The number of its transaction: they commit in another order. */
  readonly txid: number;
}

/** An orchestrator that has forgotten what it knew of the subject. */
interface ChangeReceiptRow {
  readonly change_id: string;
  readonly member_id: string;
}

export interface ChangeTables {
  readonly changes: ChangeRow;
  readonly change_receipts: ChangeReceiptRow;
}
