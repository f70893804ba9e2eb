/** How long what the blob store holds is safe without a recorded reference: what nodes and orchestrators must agree on. Pure. */

/** The quarter of a day in which a blob was written is part of its name. An upload takes no longer than this. */
export const BLOB_PERIOD_MS = 6 * 3_600_000;

/** The last period in which a reference of this one may be recorded: its blobs may be collected as garbage later. */
const RECORDABLE_PERIODS = 2;

const REF = /^[0-9a-f]{64}\.(\d{1,9})$/;

/** Whether the blobs of a reference that is not recorded yet are there in any case. @param now unix milliseconds */
export function isRecordable(ref: string, now: number): boolean {
  const [, period] = REF.exec(ref) ?? [];
  return period !== undefined && Math.floor(now / BLOB_PERIOD_MS) - Number(period) <= RECORDABLE_PERIODS;
}
