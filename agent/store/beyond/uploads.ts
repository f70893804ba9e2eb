/** Snapshots of this node that are in the blob store, with their references. The only SQL on that table. */

import type { Sqlite } from "../database/database.ts";

export interface StoredBeyond {
  /** Of the manifest of all its parts (agent/blobs/content/refs). */
  readonly ref: string;
  /** Bytes that a download of it writes. */
  readonly bytes: number;
}

export interface UploadStore {
  /** Undefined: the snapshot is on this node only. */
  get(snapshotId: string): StoredBeyond | undefined;
  add(snapshotId: string, stored: StoredBeyond): void;
  remove(snapshotId: string): void;
  ids(): string[];
}

export function uploadStore(database: Sqlite): UploadStore {
  const get = database.prepare<[string], StoredBeyond>("select ref, bytes from uploads where snapshot_id = ?");
  const add = database.prepare<[string, string, number]>("insert or replace into uploads values (?, ?, ?)");
  const remove = database.prepare<[string]>("delete from uploads where snapshot_id = ?");
  const ids = database.prepare<[], { snapshot_id: string }>("select snapshot_id from uploads");
  return {
    get: (snapshotId) => get.get(snapshotId),
    add: (snapshotId, { ref, bytes }) => void add.run(snapshotId, ref, bytes),
    remove: (snapshotId) => void remove.run(snapshotId),
    ids: () => ids.all().map(({ snapshot_id: id }) => id),
  };
}
