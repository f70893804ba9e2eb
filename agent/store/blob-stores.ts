/** The blob stores that this node has used, so that an empty directory in place of one is noticed. The only SQL on that table. */

import type { Sqlite } from "./database/database.ts";

export interface BlobStoreStore {
  /** Whether this platform's blobs were in the store of this name. */
  has(name: string, owner: string): boolean;
  add(name: string, owner: string): void;
}

export function blobStoreStore(database: Sqlite): BlobStoreStore {
  const has = database.prepare<[string, string]>("select 1 from blob_stores where name = ? and owner = ?");
  const add = database.prepare<[string, string]>("insert into blob_stores values (?, ?) on conflict do nothing");
  return {
    has: (name, owner) => has.get(name, owner) !== undefined,
    add: (name, owner) => void add.run(name, owner),
  };
}
