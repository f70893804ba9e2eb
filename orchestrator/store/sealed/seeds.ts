/** SQL on the seeds of sandboxes' tokens, which records name by an id. */

import type { Database } from "../tables.ts";

export type SeedStore = ReturnType<typeof seedStore>;

export function seedStore(db: Database) {
  return {
    /** Sandboxes that have not ended and have tokens of one of these seeds; a record that names none has the oldest. */
    async countLive(seedIds: readonly string[]): Promise<number> {
      const { count } = await db
        .selectFrom("sandboxes")
        .select((of) => of.fn.countAll<number | string>().as("count"))
        .where("state", "not in", ["gone", "killing"])
        .where((where) => where.or([where("seed_id", "is", null), where("seed_id", "in", seedIds)]))
        .executeTakeFirstOrThrow();
      return Number(count);
    },
  };
}
