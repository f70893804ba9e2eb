/**
 * The starts on each node that each orchestrator has asked for since its own start, so that every one of them tells the sum. A row
 * is written from time to time, never for a single start. The only SQL on this table.
 */

import { CLOCK } from "../membership/clock.ts";
import type { Database } from "../tables.ts";
import { type NodeStarts, nodeStartsTable } from "./happening-record.ts";

export type NodeStartsStore = ReturnType<typeof nodeStartsStore>;

interface NodeStartsDeps {
  /** Id of this orchestrator; undefined: it is none of several now. */
  readonly self: () => string | undefined;
  readonly now: () => number;
  /** No other orchestrator can use the database: nothing is written or read. */
  readonly alone: boolean;
}

/** Rows of one statement. */
const MOST_ROWS = 100;

export function nodeStartsStore(db: Database, { self, now, alone }: NodeStartsDeps) {
  return {
    /** Replaces what this orchestrator has written of these nodes. False: it is no member now, and nothing was written. */
    async write(starts: readonly NodeStarts[]): Promise<boolean> {
      const owner = self();
      if (alone || owner === undefined) return false;
      for (let from = 0; from < starts.length; from += MOST_ROWS) {
        const rows = starts
          .slice(from, from + MOST_ROWS)
          .map((each) => nodeStartsTable.toRow({ ...each, owner, at: now() }));
        await db
          .insertInto("node_starts")
          .values(rows)
          .onConflict((conflict) =>
            conflict.columns(["node_id", "owner"]).doUpdateSet((update) => ({
              succeeded: update.ref("excluded.succeeded"),
              failed: update.ref("excluded.failed"),
              errors: update.ref("excluded.errors"),
              at: update.ref("excluded.at"),
            })),
          )
          .execute();
      }
      return true;
    },

    /** What the other orchestrators have written, by node; of those that live. */
    async ofOthers(): Promise<ReadonlyMap<string, readonly NodeStarts[]>> {
      const found = new Map<string, NodeStarts[]>();
      if (alone) return found;
      const rows = await db
        .selectFrom("node_starts")
        .innerJoin("orchestrators", "orchestrators.id", "node_starts.owner")
        .selectAll("node_starts")
        .where("orchestrators.expires_at", ">", CLOCK)
        .where("node_starts.owner", "!=", self() ?? "")
        .execute();
      for (const row of rows) {
        const each = nodeStartsTable.toRecord(row);
        found.set(each.nodeId, [...(found.get(each.nodeId) ?? []), each]);
      }
      return found;
    },

    /** Deletes what orchestrators have left that are gone. */
    async forget(): Promise<void> {
      if (alone) return;
      await db
        .deleteFrom("node_starts")
        .where("owner", "not in", (select) => select.selectFrom("orchestrators").select("id"))
        .execute();
    },
  };
}
