/** Snapshots on their way to this node from another one or the blob store: each is fetched once, whoever asks, and a failed one anew at the next request. */

import { setTimeout as delay } from "node:timers/promises";
import type { Arrival, Peer } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { KeyedMutex } from "../../../shared/program/keyed-mutex.ts";
import type { ClaimedStore } from "../../blobs/claimed-store.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { OpenPeer } from "../../blobs/peer.ts";
import { storeSource } from "../../blobs/sources.ts";
import type { SnapshotStore } from "../../store/snapshots.ts";
import type { FetchFrom, FetchOptions, Wanted } from "./fetch-snapshot.ts";

/** An answer waits so long for the end, so that small snapshots need one request. */
const WAIT_MS = 5_000;

export interface ArrivalsDeps {
  readonly store: Pick<ClaimedStore, "use">;
  readonly snapshots: Pick<SnapshotStore, "get">;
  readonly peer: (place: Peer) => OpenPeer;
  readonly fetch: (wanted: Wanted, from: FetchFrom, options: FetchOptions) => Promise<void>;
  /** One operation at a time per snapshot. */
  readonly mutex: KeyedMutex;
  /** For tests. */
  readonly waitMs?: number;
}

interface Asked extends Wanted {
  /** The node that offers it. Undefined: it is in the blob store. */
  readonly peer?: Peer | undefined;
}

export interface Arrivals {
  /** Begins or joins; answers how far it is. @throws {AppError} why it cannot be here */
  fetch(asked: Asked): Promise<Arrival>;
  /** Ends the download of a snapshot that is being deleted, so that nobody waits for it. */
  cancel(snapshotId: string): void;
  stop(): Promise<void>;
}

interface UnderWay {
  readonly ended: Promise<void>;
  readonly cut: AbortController;
  done: Omit<Arrival, "here">;
}

export function createArrivals({ store, snapshots, peer, fetch, mutex, waitMs = WAIT_MS }: ArrivalsDeps): Arrivals {
  const stopping = new AbortController();
  const underWay = new Map<string, UnderWay>();

  const isHere = (id: string) => {
    const found = snapshots.get(id);
    return found !== undefined && found.state !== "taking";
  };

  const fetchFrom = async ({ peer: place, ...wanted }: Asked, options: FetchOptions) => {
    if (place === undefined) {
      const own = store.use();
      return fetch(wanted, { sources: [storeSource(own)], isStore: true }, options);
    }
    const open = peer(place);
    try {
      await fetch(wanted, { sources: [open.source], isStore: false, image: open.image }, options);
    } finally {
      await open.close();
    }
  };

  const begin = (wanted: Asked) => {
    const { snapshotId } = wanted;
    const cut = new AbortController();
    const entry: UnderWay = {
      cut,
      done: { doneBytes: 0, totalBytes: 0 },
      ended: mutex(snapshotId, async () => {
        if (isHere(snapshotId)) return;
        const progress: FetchOptions["progress"] = ({ doneBytes, totalBytes }) => {
          entry.done = { doneBytes, totalBytes };
        };
        const signal = AbortSignal.any([stopping.signal, cut.signal]);
        signal.throwIfAborted();
        await fetchFrom(wanted, { signal, progress });
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
        throw toAppError(`snapshot ${wanted.snapshotId}`, error);
      } finally {
        patience.abort();
      }
      return { here: isHere(wanted.snapshotId), ...own.done };
    },
    cancel(snapshotId) {
      underWay.get(snapshotId)?.cut.abort(new AppError("conflict", `snapshot ${snapshotId} was deleted meanwhile`));
    },
    async stop() {
      stopping.abort(new AppError("unavailable", "the agent stops"));
      await Promise.allSettled([...underWay.values()].map(({ ended }) => ended));
    },
  };
}

/** @param what "snapshot x" */
export function toAppError(what: string, error: unknown): AppError {
  if (!(error instanceof BlobError)) return AppError.from(error);
  const { fault, message } = error;
  const words = `${what} could not be fetched: ${message}`;
  if (fault === "missing") return new AppError("snapshot_files_missing", words, { cause: error });
  if (fault === "damaged") return new AppError("snapshot_corrupt", words, { cause: error });
  if (fault === "unreadable") return new AppError("snapshot_incompatible", words, { cause: error });
  if (fault === "full") return new AppError("no_space", words, { cause: error });
  return new AppError("unavailable", words, { cause: error });
}
