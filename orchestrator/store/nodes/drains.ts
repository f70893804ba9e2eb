/** The drain of each node, and what it did with each sandbox, so that any orchestrator goes on with it. The only SQL on these tables. */

import type { DrainedState } from "../../../shared/api/nodes/drains.ts";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type DrainMoveRecord, type DrainRecord, drainMoveTable, drainTable } from "./drain-record.ts";
import { addNodeEvent } from "./node-events.ts";

/** What the operator asks for. */
export type DrainWish = Pick<DrainRecord, "deadlineAt" | "running" | "atDeadline" | "atOnce">;

/** The outcome of one try. */
export interface DrainOutcome {
  readonly state: DrainedState;
  readonly toNode?: string | undefined;
  readonly reason?: string | undefined;
  readonly stallMs?: number | undefined;
}

export function drainStore(db: Database, now: () => number) {
  const moveOf = (nodeId: string, sandboxId: string) =>
    db.updateTable("drain_moves").where("node_id", "=", nodeId).where("sandbox_id", "=", sandboxId);

  const movingRow = (sandboxId: string) =>
    db
      .selectFrom("drain_moves")
      .select("node_id")
      .where("sandbox_id", "=", sandboxId)
      .where("state", "=", "moving")
      .where("was", "=", "running")
      .executeTakeFirst();

  return {
    /** Begins a drain, or changes the one under way, whose progress stays. */
    async begin(nodeId: string, wish: DrainWish): Promise<void> {
      await inTransaction(db, async (session) => {
        const former = await session.selectFrom("drains").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
        if (former?.ended_at === null) {
          await session
            .updateTable("drains")
            .set(drainTable.toColumns(asked(wish)))
            .where("node_id", "=", nodeId)
            .execute();
          return;
        }
        await session.deleteFrom("drain_moves").where("node_id", "=", nodeId).where("state", "!=", "moving").execute();
        await session.deleteFrom("drains").where("node_id", "=", nodeId).execute();
        const at = now();
        const begun = await session
          .insertInto("drains")
          .values(drainTable.toRow({ nodeId, begunAt: at, ...wish }))
          // Another orchestrator may have heard the same request.
          .onConflict((conflict) => conflict.column("node_id").doNothing())
          .returning("node_id")
          .executeTakeFirst();
        if (begun !== undefined) await addNodeEvent(session, { nodeId, kind: "draining", at, detail: untilOf(wish) });
      });
    },

    /** The node takes sandboxes again, or was removed. False: no drain was under way. */
    async end(nodeId: string): Promise<boolean> {
      const { numUpdatedRows } = await db
        .updateTable("drains")
        .set({ ended_at: now() })
        .where("node_id", "=", nodeId)
        .where("ended_at", "is", null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    async get(nodeId: string): Promise<DrainRecord | undefined> {
      const row = await db.selectFrom("drains").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
      return row === undefined ? undefined : drainTable.toRecord(row);
    },

    /** Those under way, and those that ended while a sandbox was on its way. */
    async unfinished(): Promise<DrainRecord[]> {
      const rows = await db
        .selectFrom("drains")
        .selectAll()
        .where((where) =>
          where.or([
            where("ended_at", "is", null),
            where.exists(
              where
                .selectFrom("drain_moves")
                .select("drain_moves.sandbox_id")
                .whereRef("drain_moves.node_id", "=", "drains.node_id")
                .where("drain_moves.state", "=", "moving"),
            ),
          ]),
        )
        .execute();
      return rows.map(drainTable.toRecord);
    },

    async moves(nodeId: string): Promise<DrainMoveRecord[]> {
      const rows = await db.selectFrom("drain_moves").selectAll().where("node_id", "=", nodeId).execute();
      return rows.map(drainMoveTable.toRecord);
    },

    /** Called before the sandbox is touched, so that after a crash the next orchestrator goes on with it. */
    async moving(move: Pick<DrainMoveRecord, "nodeId" | "sandboxId" | "was" | "endAt" | "at">): Promise<void> {
      const values = drainMoveTable.toRow({ ...move, state: "moving" });
      await db
        .insertInto("drain_moves")
        .values(values)
        .onConflict((conflict) => conflict.columns(["node_id", "sandbox_id"]).doUpdateSet(values))
        .execute();
    },

    async settle(
      { nodeId, sandboxId }: Pick<DrainMoveRecord, "nodeId" | "sandboxId">,
      { state, toNode, reason, stallMs }: DrainOutcome,
    ): Promise<void> {
      await moveOf(nodeId, sandboxId)
        .set(
          drainMoveTable.toColumns({
            state,
            toNode: toNode ?? null,
            reason: reason ?? null,
            stallMs: stallMs ?? null,
            at: now(),
          }),
        )
        .execute();
    },

    /** Why a sandbox that is on its way does not run yet. */
    async explain({ nodeId, sandboxId }: Pick<DrainMoveRecord, "nodeId" | "sandboxId">, reason: string): Promise<void> {
      await moveOf(nodeId, sandboxId).set({ reason }).where("state", "=", "moving").execute();
    },

    /** Whether some drain has taken the sandbox from its node, and will start it again: requests for it wait. */
    async isMoving(sandboxId: string): Promise<boolean> {
      return (await movingRow(sandboxId)) !== undefined;
    },

    /** The node that a drain takes the sandbox from, which still has its snapshot; undefined: none does. */
    async movedFrom(sandboxId: string): Promise<string | undefined> {
      const row = await movingRow(sandboxId);
      return row?.node_id;
    },

    /** Its owner has paused a sandbox that a drain would start again: it is carried as it is. False: no drain has it. */
    async leavePaused(sandboxId: string): Promise<boolean> {
      const { numUpdatedRows } = await db
        .updateTable("drain_moves")
        .set({ was: "paused" })
        .where("sandbox_id", "=", sandboxId)
        .where("state", "=", "moving")
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },

    /** A paused sandbox lives on another node now, which has its snapshot. False: it was resumed, ended or moved meanwhile. */
    async rehome(sandbox: {
      readonly id: string;
      readonly snapshotId: string;
      readonly from: string;
      readonly to: string;
    }): Promise<boolean> {
      const { numUpdatedRows } = await db
        .updateTable("sandboxes")
        .set({ node_id: sandbox.to })
        .where("id", "=", sandbox.id)
        .where("state", "=", "paused")
        .where("snapshot_id", "=", sandbox.snapshotId)
        .where("node_id", "=", sandbox.from)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },
  };
}

function untilOf({ deadlineAt }: DrainWish): string | undefined {
  return deadlineAt === undefined ? undefined : `until ${new Date(deadlineAt).toISOString()}`;
}

function asked({ deadlineAt, ...wish }: DrainWish) {
  return { ...wish, deadlineAt: deadlineAt ?? null };
}
