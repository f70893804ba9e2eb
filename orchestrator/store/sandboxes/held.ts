/**
 * Executions that their node has frozen because its disk is short, so that each hold and release is one event, whichever
 * orchestrators hear of it. The only SQL on this table.
 */

import type { Database, Session } from "../tables.ts";

interface Held {
  readonly executionId: string;
  readonly sandboxId: string;
}

export type HeldStore = ReturnType<typeof heldStore>;

export function heldStore(db: Database, now: () => number) {
  return {
    async onNode(nodeId: string): Promise<ReadonlySet<string>> {
      const rows = await db
        .selectFrom("held_executions")
        .select("execution_id")
        .where("node_id", "=", nodeId)
        .execute();
      return new Set(rows.map((row) => row.execution_id));
    },

    /** @param sandboxIds absent: of all */
    async list(sandboxIds?: readonly string[]): Promise<Held[]> {
      let query = db.selectFrom("held_executions").select(["execution_id", "sandbox_id"]);
      if (sandboxIds !== undefined) query = query.where("sandbox_id", "in", sandboxIds);
      const rows = await query.execute();
      return rows.map((row) => ({ executionId: row.execution_id, sandboxId: row.sandbox_id }));
    },

    /** False: it is held already. */
    async hold(
      session: Session,
      { executionId, sandboxId, nodeId }: Held & { readonly nodeId: string },
    ): Promise<boolean> {
      const row = await session
        .insertInto("held_executions")
        .values({ execution_id: executionId, sandbox_id: sandboxId, node_id: nodeId, held_at: now() })
        .onConflict((conflict) => conflict.column("execution_id").doNothing())
        .returning("execution_id")
        .executeTakeFirst();
      return row !== undefined;
    },

    /** False: it is not held. */
    async release(session: Session, executionId: string): Promise<boolean> {
      const result = await session
        .deleteFrom("held_executions")
        .where("execution_id", "=", executionId)
        .executeTakeFirst();
      return result.numDeletedRows === 1n;
    },

    /** They have ended. */
    async forget(executionIds: readonly string[]): Promise<void> {
      if (executionIds.length === 0) return;
      await db.deleteFrom("held_executions").where("execution_id", "in", executionIds).execute();
    },
  };
}
