/** Cached layers of builds: the image of each key. The only SQL on that table, apart from migrations. */

import type { Sqlite } from "./database/database.ts";

export interface Layer {
  readonly key: string;
  /** A name, which keeps Docker from removing the image. */
  readonly image: string;
  /** Bytes that the layer adds to the one below it. */
  readonly bytes: number;
  /** Unix milliseconds. */
  readonly usedAt: number;
  /** User, directory and variables after the step; absent for a base. */
  readonly context?: LayerContext;
}

interface LayerContext {
  readonly envs: Readonly<Record<string, string>>;
  readonly user: string;
  readonly workdir: string;
}

export interface LayerStore {
  /** Replaces the previous image of the key. */
  put(layer: Layer): void;
  get(key: string): Layer | undefined;
  used(key: string, at: number): void;
  remove(key: string): void;
  all(): Layer[];
}

interface Row {
  key: string;
  image: string;
  bytes: number;
  used_at: number;
  context: string | null;
}

export function layerStore(database: Sqlite): LayerStore {
  const put = database.prepare<[string, string, number, number, string | null]>(
    "insert or replace into layers (key, image, bytes, used_at, context) values (?, ?, ?, ?, ?)",
  );
  const get = database.prepare<[string], Row>("select * from layers where key = ?");
  const used = database.prepare<[number, string]>("update layers set used_at = ? where key = ?");
  const remove = database.prepare<[string]>("delete from layers where key = ?");
  const all = database.prepare<[], Row>("select * from layers");
  const toLayer = ({ key, image, bytes, used_at: usedAt, context }: Row): Layer => ({
    key,
    image,
    bytes,
    usedAt,
    ...(context === null ? {} : { context: JSON.parse(context) as LayerContext }),
  });
  return {
    put: ({ key, image, bytes, usedAt, context }) =>
      void put.run(key, image, bytes, usedAt, context === undefined ? null : JSON.stringify(context)),
    get(key) {
      const row = get.get(key);
      return row === undefined ? undefined : toLayer(row);
    },
    used: (key, at) => void used.run(at, key),
    remove: (key) => void remove.run(key),
    all: () => all.all().map(toLayer),
  };
}
