/** What of this node is in the blob store, with its references: snapshots, and images of builds. The only SQL on these tables. */

import type { Sqlite } from "../database/database.ts";

export interface StoredBeyond {
  /** Of the manifest of all its parts (agent/blobs/content/refs). */
  readonly ref: string;
  /** Bytes that a download of it writes. */
  readonly bytes: number;
}

export interface UploadStore {
  /** Undefined: it is on this node only. */
  get(id: string): StoredBeyond | undefined;
  add(id: string, stored: StoredBeyond): void;
  remove(id: string): void;
  ids(): string[];
}

const TABLES = {
  snapshots: { name: "uploads", id: "snapshot_id" },
  images: { name: "image_uploads", id: "build_id" },
} as const;

export function uploadStore(database: Sqlite, of: keyof typeof TABLES): UploadStore {
  const { name, id: column } = TABLES[of];
  const get = database.prepare<[string], StoredBeyond>(`select ref, bytes from ${name} where ${column} = ?`);
  const add = database.prepare<[string, string, number]>(`insert or replace into ${name} values (?, ?, ?)`);
  const remove = database.prepare<[string]>(`delete from ${name} where ${column} = ?`);
  const ids = database.prepare<[], { id: string }>(`select ${column} as id from ${name}`);
  return {
    get: (id) => get.get(id),
    add: (id, { ref, bytes }) => void add.run(id, ref, bytes),
    remove: (id) => void remove.run(id),
    ids: () => ids.all().map(({ id }) => id),
  };
}
