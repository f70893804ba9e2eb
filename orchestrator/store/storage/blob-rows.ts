/** Rows of the tables of references into the blob store. */

export interface BlobRefRow {
  /** Of a snapshot, or of the build of a template for its image. */
  readonly snapshot_id: string;
  readonly ref: string;
  /** Whose content it is: blobs are named and sealed for their project. */
  readonly project_id: string;
  /** Bytes that a download writes. */
  readonly bytes: number;
  readonly stored_at: number;
  /** No record names it since then. */
  readonly dropped_at: number | null;
}

/** A day, counted from 1970, on which the garbage of the blob store was collected. */
export interface BlobSweepRow {
  readonly day: number;
  readonly claimed_at: number;
}
