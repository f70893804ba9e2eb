/**
 * Uploads stored snapshots to the blob store in the background, one at a time: named snapshots always, paused sandboxes where the
 * operator wants it. An upload that fails is tried again, and goes on with what is in the store already.
 */

import type { Beyond } from "../../../shared/agent-api/routes.ts";
import { anySignal } from "../../../shared/program/any-signal.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { ClaimedStore } from "../../blobs/claimed-store.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { StoredBeyond } from "../../store/beyond/uploads.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";
import type { DescribeOptions } from "./describe-snapshot.ts";
import { isDue, type Tried, toUpload } from "./upload-plan.ts";

const EVERY_MS = 5_000;

export interface UploadsDeps {
  readonly store: Pick<ClaimedStore, "name" | "use">;
  readonly stores: Pick<Stores, "snapshots" | "uploads" | "builds">;
  /** Paused sandboxes too. */
  readonly paused: boolean;
  /** Writes one snapshot to the store. */
  readonly upload: (
    snapshot: Snapshot,
    store: ReturnType<ClaimedStore["use"]>,
    options: DescribeOptions,
  ) => Promise<StoredBeyond>;
  /** A snapshot is stored, or could not be. */
  readonly onChange: () => void;
  readonly now: () => number;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

export interface Uploads {
  /** Where the snapshot is beside this node; undefined: nowhere, and it is not meant to be. */
  of(snapshotId: string): Beyond | undefined;
  /** The reference of the snapshot was not recorded in time: it is uploaded again. */
  again(snapshotId: string): void;
  start(): void;
  stop(): Promise<void>;
}

interface UnderWay {
  readonly id: string;
  done: { doneBytes: number; totalBytes: number };
}

export function createUploads(deps: UploadsDeps): Uploads {
  const { store, stores, paused, onChange, now, log, everyMs = EVERY_MS } = deps;
  const tried = new Map<string, Tried>();
  let underWay: UnderWay | undefined;
  let rounds: Loop | undefined;

  const isStill = (id: string) => {
    const found = stores.snapshots.get(id);
    return found?.state === "stored" && !found.resuming;
  };
  const wanted = (snapshot: Snapshot) =>
    toUpload(snapshot, { paused, ofBuild: stores.builds.get(snapshot.executionId) !== undefined });

  const uploadOne = async (snapshot: Snapshot, signal: AbortSignal): Promise<void> => {
    const { id, sandboxId } = snapshot;
    const gone = new AbortController();
    const own: UnderWay = { id, done: { doneBytes: 0, totalBytes: 0 } };
    underWay = own;
    try {
      const stored = await deps.upload(snapshot, store.use(), {
        signal: anySignal(signal, gone.signal),
        progress({ doneBytes, totalBytes }) {
          own.done = { doneBytes, totalBytes };
          if (!isStill(id)) gone.abort(new BlobError("changed", `snapshot ${id} was resumed or deleted meanwhile`));
        },
      });
      // What a resume has written meanwhile would not fit its memory.
      if (!isStill(id)) return;
      stores.uploads.add(id, stored);
      log.info({ snapshotId: id, sandboxId, ...stored }, "a snapshot is in the blob store");
    } catch (error) {
      signal.throwIfAborted();
      if (!isStill(id)) return;
      const message = error instanceof Error ? error.message : String(error);
      const times = (tried.get(id)?.times ?? 0) + 1;
      tried.set(id, { times, at: now(), message });
      log.warn({ err: error, snapshotId: id, sandboxId, times }, "could not upload a snapshot yet");
    } finally {
      underWay = undefined;
    }
    onChange();
  };

  const round = async (signal: AbortSignal) => {
    const all = stores.snapshots.all();
    const ids = new Set(all.map(({ id }) => id));
    for (const id of stores.uploads.ids()) if (!ids.has(id)) stores.uploads.remove(id);
    for (const id of tried.keys()) if (!ids.has(id)) tried.delete(id);
    const next = all
      .filter((each) => wanted(each) && stores.uploads.get(each.id) === undefined)
      .filter((each) => isDue(each, tried.get(each.id), now()))
      .sort((a, b) => a.takenAt - b.takenAt);
    for (const snapshot of next) {
      signal.throwIfAborted();
      if (isStill(snapshot.id)) await uploadOne(snapshot, signal);
    }
  };

  return {
    of(snapshotId) {
      const stored = stores.uploads.get(snapshotId);
      if (stored !== undefined) return { ...stored };
      if (store.name === undefined) return undefined;
      if (underWay?.id === snapshotId) return { ...underWay.done };
      const failure = tried.get(snapshotId)?.message;
      if (failure !== undefined) return { failure: failure.slice(0, 1_000) };
      const snapshot = stores.snapshots.get(snapshotId);
      return snapshot !== undefined && wanted(snapshot) ? { doneBytes: 0, totalBytes: 0 } : undefined;
    },
    again(snapshotId) {
      if (stores.uploads.get(snapshotId) === undefined) return;
      stores.uploads.remove(snapshotId);
      const times = (tried.get(snapshotId)?.times ?? 0) + 1;
      tried.set(snapshotId, {
        times,
        at: now(),
        message: "it was uploaded, and its reference was not recorded in time",
      });
    },
    start() {
      if (store.name === undefined) return;
      rounds ??= loop({ name: "uploads of snapshots", everyMs, log }, round);
    },
    stop: async () => rounds?.stop(),
  };
}
