/** Snapshots on their way from the blob store to this node: each is fetched once, whoever asks, and a failed one anew at the next request. */

import { setTimeout as delay } from "node:timers/promises";
import type { Arrival } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { KeyedMutex } from "../../../shared/program/keyed-mutex.ts";
import type { ClaimedStore } from "../../blobs/claimed-store.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { BlobStore } from "../../blobs/stores/store.ts";
import type { SnapshotStore } from "../../store/snapshots.ts";
import type { FetchOptions, Wanted } from "./fetch-snapshot.ts";

/** An answer waits so long for the end, so that small snapshots need one request. */
const WAIT_MS = 5_000;

export interface ArrivalsDeps {
  readonly store: Pick<ClaimedStore, "use">;
  readonly snapshots: Pick<SnapshotStore, "get">;
  readonly fetch: (wanted: Wanted, store: BlobStore, options: FetchOptions) => Promise<void>;
  /** One operation at a time per snapshot. */
  readonly mutex: KeyedMutex;
  /** For tests. */
  readonly waitMs?: number;
}

export interface Arrivals {
  /** Begins or joins; answers how far it is. @throws {AppError} why it cannot be here */
  fetch(wanted: Wanted): Promise<Arrival>;
  stop(): Promise<void>;
}

export function createArrivals({ store, snapshots, fetch, mutex, waitMs = WAIT_MS }: ArrivalsDeps): Arrivals {
  const stopping = new AbortController();
  const underWay = new Map<string, { readonly ended: Promise<void>; done: Omit<Arrival, "here"> }>();

  const isHere = (id: string) => {
    const found = snapshots.get(id);
    return found !== undefined && found.state !== "taking";
  };

  const begin = (wanted: Wanted) => {
    const { snapshotId } = wanted;
    const entry = {
      done: { doneBytes: 0, totalBytes: 0 },
      ended: mutex(snapshotId, async () => {
        if (isHere(snapshotId)) return;
        const progress: FetchOptions["progress"] = ({ doneBytes, totalBytes }) => {
          entry.done = { doneBytes, totalBytes };
        };
        await fetch(wanted, store.use(), { signal: stopping.signal, progress });
      }).finally(() => underWay.delete(snapshotId)),
    };
    // Whoever waits is told; when nobody does any more, the next request tries again.
    entry.ended.catch(() => undefined);
    underWay.set(snapshotId, entry);
    return entry;
  };

  return {
    async fetch(wanted) {
      if (isHere(wanted.snapshotId)) return { here: true, doneBytes: 0, totalBytes: 0 };
      const own = underWay.get(wanted.snapshotId) ?? begin(wanted);
      const patience = new AbortController();
      try {
        await Promise.race([own.ended, delay(waitMs, undefined, { signal: patience.signal })]);
      } catch (error) {
        throw toAppError(wanted.snapshotId, error);
      } finally {
        patience.abort();
      }
      return { here: isHere(wanted.snapshotId), ...own.done };
    },
    async stop() {
      stopping.abort(new AppError("unavailable", "the agent stops"));
      await Promise.allSettled([...underWay.values()].map(({ ended }) => ended));
    },
  };
}

function toAppError(snapshotId: string, error: unknown): AppError {
  if (!(error instanceof BlobError)) return AppError.from(error);
  const { fault, message } = error;
  const words = `snapshot ${snapshotId} could not be fetched from the blob store: ${message}`;
  if (fault === "missing") return new AppError("snapshot_files_missing", words, { cause: error });
  if (fault === "damaged") return new AppError("snapshot_corrupt", words, { cause: error });
  if (fault === "unreadable") return new AppError("snapshot_incompatible", words, { cause: error });
  if (fault === "full") return new AppError("no_space", words, { cause: error });
  return new AppError("unavailable", words, { cause: error });
}
