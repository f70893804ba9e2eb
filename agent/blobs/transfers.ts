/** The limit of blobs that are in memory and on their way at a time, for all uploads and downloads of a node together. */

import { createSemaphore, type Semaphore } from "../../shared/program/semaphore.ts";

/** Each transfer holds the content of a blob and its stored bytes: 8 MiB. */
const AT_ONCE = 6;

export type Transfers = Pick<Semaphore, "take">;

/** One for a node. Uploads and downloads take turns, blob by blob. */
export function createTransfers(atOnce = AT_ONCE): Transfers {
  return createSemaphore(atOnce);
}

/**
 * Does the work of each item, as many at a time as there are free permits. After a failure, or when the signal comes, nothing more
 * begins, and what had begun has ended when this rejects.
 */
export async function runTransfers<T>(
  transfers: Transfers,
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T, cut: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const cut = AbortSignal.any([signal, failed.signal]);
  const under = new Set<Promise<void>>();
  try {
    for (const item of items) {
      const release = await transfers.take(cut);
      const running = work(item, cut)
        .catch((error: unknown) => failed.abort(error))
        .finally(() => {
          release();
          under.delete(running);
        });
      under.add(running);
    }
    await Promise.all(under);
    cut.throwIfAborted();
  } catch (error) {
    failed.abort(error);
    await Promise.all(under);
    throw signal.aborted ? signal.reason : failed.signal.reason;
  }
}
