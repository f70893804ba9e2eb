/** Columns of the tables of secrets. Times are unix milliseconds. */

export interface SecretRow {
  readonly id: string;
  readonly project_id: string;
  /** In lower case; unique in the project. */
  readonly name: string;
  readonly version: number;
  /** A JSON object, in clear. */
  readonly metadata: string;
  /** The value of this version, encrypted with the data key for this id and version. */
  readonly value: string;
  /** The data key, encrypted with the key-encryption key that `key_id` names. */
  readonly data_key: string;
  readonly key_id: string;
  readonly wrapped_at: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly use_count: number;
  readonly last_used_at: number | null;
}

/** A secret that a node fetched for an execution. Goes with the secret, and with the sandbox's record. */
interface SecretUseRow {
  readonly secret_id: string;
  readonly execution_id: string;
  readonly sandbox_id: string;
  readonly project_id: string;
  /** The only node whose reports count. */
  readonly node_id: string;
  /** Newest version that was fetched. */
  readonly version: number;
  readonly first_at: number;
  /** As reported; 0 until the first report. */
  readonly use_count: number;
  readonly last_at: number | null;
}

/** A report that was counted: its repetition is not. */
interface UseReportRow {
  readonly id: string;
  readonly reported_at: number;
}

export interface SecretTables {
  readonly secrets: SecretRow;
  readonly secret_uses: SecretUseRow;
  readonly use_reports: UseReportRow;
}
