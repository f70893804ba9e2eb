/** The tables of secrets. Times are unix milliseconds. */

import { json, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const secretTable = table(
  {
    id: text("id"),
    projectId: text("project_id"),
    /** In lower case; unique in the project. */
    name: text("name"),
    version: number("version"),
    /** In clear. */
    metadata: json("metadata").as<Readonly<Record<string, string>>>(),
    createdAt: number("created_at"),
    updatedAt: number("updated_at"),
    useCount: number("use_count").initially(0),
    lastUsedAt: number("last_used_at").later(),
  },
  {
    /** The value of this version, encrypted with the data key for this id and version. */
    value: text("value"),
    /** The data key, encrypted with the key-encryption key that `keyId` names. */
    wrapped: text("data_key"),
    keyId: text("key_id"),
    wrappedAt: number("wrapped_at"),
  },
);

/** A secret without its value. */
export type SecretRecord = RecordOf<typeof secretTable>;

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
  readonly secrets: RowOf<typeof secretTable>;
  readonly secret_uses: SecretUseRow;
  readonly use_reports: UseReportRow;
}
