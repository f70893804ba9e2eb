/** The rows of membership and leases, as Kysely sees them, and what names a member. */

interface OrchestratorRow {
  readonly id: string;
  /** Grows when the process is a member again after its row had lapsed. */
  readonly epoch: number;
  readonly version: string;
  readonly expires_at: number;
  /** The ids of its keys, as JSON; null: a version that names none. */
  readonly settings: string | null;
}

interface LeaseRow {
  readonly name: string;
  /** Id of an orchestrator. */
  readonly owner: string;
  /** Grows with each change of the owner. */
  readonly epoch: number;
  readonly expires_at: number;
}

/** A process in one of its times as a member. */
export interface Member {
  readonly id: string;
  readonly epoch: number;
}

export interface MembershipTables {
  readonly orchestrators: OrchestratorRow;
  readonly leases: LeaseRow;
}
