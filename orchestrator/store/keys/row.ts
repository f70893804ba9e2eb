/** The columns of API keys. */

export interface KeyRow {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly hash: string;
  readonly mask_prefix: string;
  readonly mask_suffix: string;
  readonly value_length: number;
  readonly created_at: number;
  readonly last_used_at: number | null;
  /** Comma-separated. */
  readonly scopes: string;
  readonly expires_at: number | null;
  /** The credential that made it: `admin`, or the mask of a key. Older keys have none. */
  readonly created_by: string | null;
}
