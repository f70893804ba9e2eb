/**
 * What an agent with a lost database found on its node: containers, snapshots and images that it must not delete before a time,
 * because the lost database named them. The only SQL on that table, apart from migrations.
 */

import type { Sqlite } from "./database/database.ts";

interface Remains {
  /** Ids of containers, with or without their disk image. */
  readonly containers: ReadonlySet<string>;
  readonly snapshots: ReadonlySet<string>;
  /** Names of templates' images. */
  readonly images: ReadonlySet<string>;
}

export interface RemainsStore {
  /** On the disk when this returns. @param until unix milliseconds */
  hold(remains: Remains, until: number): void;
  /** What is held now. */
  held(): Remains;
  /** Ends the holding of what has been held until a time, and returns it. */
  release(now: number): Remains;
}

interface Row {
  kind: "container" | "snapshot" | "image";
  id: string;
}

export function remainsStore(database: Sqlite): RemainsStore {
  const insert = database.prepare<[Row["kind"], string, number]>("insert or replace into remains values (?, ?, ?)");
  const all = database.prepare<[], Row>("select kind, id from remains");
  const remove = database.prepare<[number], Row>("delete from remains where until <= ? returning kind, id");
  return {
    hold: database.transaction(({ containers, snapshots, images }: Remains, until: number) => {
      for (const id of containers) insert.run("container", id, until);
      for (const id of snapshots) insert.run("snapshot", id, until);
      for (const id of images) insert.run("image", id, until);
    }),
    held: () => toRemains(all.all()),
    release: (now) => toRemains(remove.all(now)),
  };
}

function toRemains(rows: readonly Row[]): Remains {
  const ids = (wanted: Row["kind"]) => new Set(rows.filter(({ kind }) => kind === wanted).map(({ id }) => id));
  return { containers: ids("container"), snapshots: ids("snapshot"), images: ids("image") };
}
