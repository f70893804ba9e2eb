/** Images that this node has fetched from other nodes or the blob store, so that it removes them again. The only SQL on that table. */

import type { Sqlite } from "../database/database.ts";

export interface CopyStore {
  /** Called before Docker has the image, so that a crash leaves a row. @param at unix milliseconds */
  add(image: string, at: number): void;
  remove(image: string): void;
  /** Names of the images that were fetched before this time, unix milliseconds. */
  before(at: number): string[];
  all(): string[];
}

export function copyStore(database: Sqlite): CopyStore {
  const add = database.prepare<[string, number]>("insert or replace into copies values (?, ?)");
  const remove = database.prepare<[string]>("delete from copies where image = ?");
  const all = database.prepare<[], { image: string }>("select image from copies");
  const before = database.prepare<[number], { image: string }>("select image from copies where fetched_at < ?");
  return {
    add: (image, at) => void add.run(image, at),
    remove: (image) => void remove.run(image),
    all: () => all.all().map(({ image }) => image),
    before: (at) => before.all(at).map(({ image }) => image),
  };
}
