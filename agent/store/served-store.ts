/** The store that this node serves, and how far it had come. The only SQL on that table, apart from migrations. */

import type { StoreMark } from "../../shared/agent-api/routes.ts";
import type { Sqlite } from "./database/database.ts";

export interface ServedStoreStore {
  /** Undefined: the node has served none since it remembers. */
  get(): StoreMark | undefined;
  set(mark: StoreMark): void;
}

interface Row {
  store_id: string;
  opening: string;
  mark: number;
}

export function servedStoreStore(database: Sqlite): ServedStoreStore {
  const get = database.prepare<[], Row>("select store_id, opening, mark from served_store");
  const set = database.prepare<[string, string, number]>(
    `insert into served_store values (1, ?, ?, ?)
     on conflict do update set store_id = excluded.store_id, opening = excluded.opening, mark = excluded.mark`,
  );
  return {
    get() {
      const row = get.get();
      return row === undefined ? undefined : { storeId: row.store_id, opening: row.opening, mark: row.mark };
    },
    set: ({ storeId, opening, mark }) => void set.run(storeId, opening, mark),
  };
}
