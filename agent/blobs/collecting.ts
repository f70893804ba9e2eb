/** Collects the garbage of the blob store when the orchestrator asks for it: in the background, one at a time. */

import type { CollectBlobs } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { ClaimedStore } from "./claimed-store.ts";
import { BlobError } from "./content/blob-error.ts";
import { type Collection, collectGarbage, type LiveManifest } from "./garbage.ts";
import type { Blobs } from "./host-blobs.ts";
import { type BlobReader, createReader, storeSource } from "./sources.ts";

export interface CollectingDeps {
  readonly store: Pick<ClaimedStore, "use">;
  readonly blobs: Pick<Blobs, "codec">;
  readonly now: () => number;
  readonly log: Log;
}

export interface Collecting {
  /** Resolves when it has begun. @throws {AppError} unavailable, conflict while one is under way */
  begin(asked: CollectBlobs): void;
  /** Resolves to the outcome of the last one; undefined: none began, or it failed. */
  ended(): Promise<Collection | undefined>;
  stop(): Promise<void>;
}

export function createCollecting({ store, blobs, now, log }: CollectingDeps): Collecting {
  const stopping = new AbortController();
  let last = Promise.resolve<Collection | undefined>(undefined);
  let busy = false;

  const collect = async ({ at, live }: CollectBlobs): Promise<Collection | undefined> => {
    try {
      const own = store.use();
      const readers = new Map<string, BlobReader>();
      const readerOf = (projectId: string) => {
        const reader =
          readers.get(projectId) ?? createReader({ sources: [storeSource(own)], codec: blobs.codec(projectId), now });
        readers.set(projectId, reader);
        return reader;
      };
      const manifests = live.map(({ ref, projectId }): LiveManifest => ({ ref, reader: readerOf(projectId) }));
      // The references are of this moment: what came later is too young to be judged.
      const clock = () => Math.min(at, now());
      const collection = await collectGarbage({ store: own, now: clock }, { live: manifests }, stopping.signal);
      log.info({ references: live.length, ...collection }, "collected the garbage of the blob store");
      return collection;
    } catch (error) {
      if (!stopping.signal.aborted) log.error({ err: error }, "could not collect the garbage of the blob store");
      return undefined;
    } finally {
      busy = false;
    }
  };

  return {
    begin(asked) {
      if (busy) throw new AppError("conflict", "this node collects the garbage of the blob store already");
      try {
        store.use();
      } catch (error) {
        if (error instanceof BlobError) throw new AppError("unavailable", error.message, { cause: error });
        throw error;
      }
      busy = true;
      last = collect(asked);
    },
    ended: () => last,
    async stop() {
      stopping.abort(new AppError("unavailable", "the agent stops"));
      await last;
    },
  };
}
