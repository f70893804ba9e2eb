/** SQL on sandboxes; the only file that changes their state, by one statement that checks and writes. */

import { sql } from "kysely";
import { type SandboxState, statesBefore } from "../../../shared/states/sandbox-state.ts";
import { concernsRow } from "../audit/scope.ts";
import type { Changes } from "../changes/changes.ts";
import { isPostgres, lock, locks } from "../locks.ts";
import type { MovingOperations } from "../operations/operations.ts";
import type { StartLimits } from "../projects/limits.ts";
import { LIVE, maySnapshot, mayStart, ROW_TERMS } from "../projects/use.ts";
import { fits } from "../storage/quota.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { addUses } from "../volumes/volumes.ts";
import { claimExpired, type ExpiredWanted, expired, moveEnds } from "./expired.ts";
import { sandboxLists } from "./lists.ts";
import { countsOthers, type Move } from "./move.ts";
import type { NewSandbox, SandboxRecord, SandboxTable } from "./record.ts";

/** Moves to these begin or end a route, of which other orchestrators have a copy. */
const ROUTED: ReadonlySet<SandboxState> = new Set(["running", "pausing", "rewinding", "killing", "gone"]);
const IN_TRANSITION: readonly SandboxState[] = ["starting", "pausing", "snapshotting", "rewinding", "killing"];

export type SandboxStore = ReturnType<typeof sandboxStore>;

interface SandboxStoreDeps {
  readonly table: SandboxTable;
  readonly now: () => number;
  readonly operations: MovingOperations;
  readonly changes: Changes;
  /** Whether no other process works on the sandboxes. */
  readonly alone: boolean;
}

export function sandboxStore(db: Database, { table, now, operations, changes, alone }: SandboxStoreDeps) {
  const { toRecord } = table;

  /** What other orchestrators must know of a move. */
  async function follow(session: Session, move: Move): Promise<void> {
    await operations.moved(session, move);
    if (ROUTED.has(move.to)) await changes.note(session, "sandbox", move.id);
  }

  return {
    /** False: the project may not start it. One statement decides and inserts, so that a burst cannot overshoot. */
    async add(sandbox: NewSandbox, limit: StartLimits): Promise<boolean> {
      concernsRow("sandboxes", sandbox.id);
      return inTransaction(db, async (session) => {
        await lock(session, locks.project(sandbox.projectId));
        if (!(await insert(session, { sandbox, table, limit, now: now() }))) return false;
        const { metadata, volumeMounts } = sandbox;
        const rows = Object.entries(metadata).map(([name, value]) => ({ sandbox_id: sandbox.id, name, value }));
        if (rows.length > 0) await session.insertInto("sandbox_metadata").values(rows).execute();
        await addUses(session, volumeMounts, { sandbox_id: sandbox.id });
        await operations.begin(session, sandbox.id, "running");
        return true;
      });
    },

    async get(id: string): Promise<SandboxRecord | undefined> {
      const row = await db.selectFrom("sandboxes").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : toRecord(row);
    },

    /** Sealed environment of a sandbox. */
    async envs(id: string): Promise<string | undefined> {
      return (await db.selectFrom("sandboxes").select("envs").where("id", "=", id).executeTakeFirst())?.envs;
    },

    /**
     * The record after the move. Undefined: the table allows no such move from its state, or `when` does not hold. One
     * that `countsOthers` needs a transaction, and so does each with several processes.
     * @throws {UnderWay} another orchestrator works on the sandbox
     * @throws {Overtaken} another orchestrator has taken over what this move would end
     */
    async move(session: Session, move: Move): Promise<SandboxRecord | undefined> {
      const { when = {}, set = {} } = move;
      const allowed = statesBefore(move.to).filter((state) => when.from?.includes(state) ?? true);
      if (allowed.length === 0) return undefined;
      if (countsOthers(when)) await lockProjectOf(session, move.id);
      let query = session
        .updateTable("sandboxes")
        .set({ ...table.toColumns(set), state: move.to, deadline_at: set.deadlineAt ?? 0 })
        .where("id", "=", move.id)
        .where("state", "in", allowed);
      if (when.executionId !== undefined) query = query.where("execution_id", "=", when.executionId);
      if (when.nodeId !== undefined) query = query.where("node_id", "=", when.nodeId);
      if (when.endAtMost !== undefined) query = query.where("end_at", "<=", when.endAtMost);
      if (when.snapshotId !== undefined) query = query.where("snapshot_id", "=", when.snapshotId);
      if (when.limit !== undefined) query = query.where(mayStart(ROW_TERMS, when.limit, now()));
      if (when.snapshots !== undefined) query = query.where(maySnapshot(when.snapshots.most));
      if (when.room !== undefined) query = query.where(fits(when.room));
      // The first decision about an end stays, and no sandbox is gone without one.
      if (set.end !== undefined) query = query.where("end_reason", "is", null);
      else if (move.to === "gone") query = query.where("end_reason", "is not", null);
      const row = await query.returningAll().executeTakeFirst();
      if (row === undefined) return undefined;
      await follow(session, move);
      return toRecord(row);
    },

    /** A start goes to another node, as another execution, or goes on for longer. False: it has ended, or is another one's. */
    async changeStart(
      id: string,
      executionId: string,
      set: Partial<Pick<NewSandbox, "executionId" | "nodeId" | "deadlineAt">>,
    ): Promise<boolean> {
      const result = await db
        .updateTable("sandboxes")
        .set(table.toColumns(set))
        .where("id", "=", id)
        .where("state", "=", "starting")
        .where("execution_id", "=", executionId)
        .executeTakeFirst();
      return result.numUpdatedRows === 1n;
    },

    /** Sets the end of a running sandbox; `extendOnly` never shortens. Undefined: it is not running. */
    async setEnd(
      session: Session,
      id: string,
      end: { readonly at: number; readonly extendOnly: boolean },
    ): Promise<SandboxRecord | undefined> {
      const row = await session
        .updateTable("sandboxes")
        .set((update) => ({
          end_at: end.extendOnly
            ? update.case().when("end_at", "<", end.at).then(end.at).else(update.ref("end_at")).end()
            : end.at,
        }))
        .where("id", "=", id)
        .where("state", "=", "running")
        .returningAll()
        .executeTakeFirst();
      return row === undefined ? undefined : toRecord(row);
    },

    ...sandboxLists(db, table),

    /** Running sandboxes whose end has passed, oldest first. Of several processes one gets each of them. */
    async expired(wanted: ExpiredWanted): Promise<SandboxRecord[]> {
      return (await (alone ? expired(db, wanted) : claimExpired(db, wanted))).map(toRecord);
    },

    /**
     * Sandboxes in a transition that should have ended before `deadline`, the longest overdue first; without those on which
     * another orchestrator works.
     */
    async stuck(deadline: number, limit: number): Promise<SandboxRecord[]> {
      const rows = await db
        .selectFrom("sandboxes")
        .selectAll()
        .where("state", "in", IN_TRANSITION)
        .where("deadline_at", "<=", deadline)
        .where(operations.isFree("sandboxes.id"))
        .orderBy("deadline_at")
        .limit(limit)
        .execute();
      return rows.map(toRecord);
    },

    /** The process that worked on them is gone: all transitions are overdue from now on. Others keep theirs. */
    async abandonAll(): Promise<void> {
      if (!alone) return operations.abandonLapsed();
      await db.updateTable("sandboxes").set({ deadline_at: 0 }).where("state", "in", IN_TRANSITION).execute();
    },

    /** Sets the next try of a repair that failed to `deadlineAt`, after the other repairs. */
    async postpone(id: string, executionId: string, deadlineAt: number): Promise<void> {
      await db
        .updateTable("sandboxes")
        .set({ deadline_at: deadlineAt })
        .where("id", "=", id)
        .where("execution_id", "=", executionId)
        .where("state", "in", IN_TRANSITION)
        .execute();
    },

    clockSet: (ms: number) => moveEnds(db, ms),

    async onNode(nodeId: string): Promise<SandboxRecord[]> {
      const rows = await db
        .selectFrom("sandboxes")
        .selectAll()
        .where("node_id", "=", nodeId)
        .where("state", "in", LIVE)
        .execute();
      return rows.map(toRecord);
    },

    /** Every sandbox that may have a route. */
    async routable(): Promise<SandboxRecord[]> {
      const rows = await db
        .selectFrom("sandboxes")
        .selectAll()
        .where("state", "in", ["running", "snapshotting"])
        .execute();
      return rows.map(toRecord);
    },

    async getMany(ids: readonly string[]): Promise<SandboxRecord[]> {
      if (ids.length === 0) return [];
      return (await db.selectFrom("sandboxes").selectAll().where("id", "in", ids).execute()).map(toRecord);
    },

    async liveIds(projectId: string): Promise<string[]> {
      const rows = await db
        .selectFrom("sandboxes")
        .select("id")
        .where("project_id", "=", projectId)
        .where("state", "in", [...LIVE, "paused"])
        .execute();
      return rows.map(({ id }) => id);
    },

    async runningByProject(): Promise<ReadonlyMap<string, number>> {
      const rows = await db
        .selectFrom("sandboxes")
        .select((select) => ["project_id", select.fn.countAll<number | string>().as("count")])
        .where("state", "in", ["running", "snapshotting", "rewinding"])
        .groupBy("project_id")
        .execute();
      return new Map(rows.map((row) => [row.project_id, Number(row.count)]));
    },

    async countByState(): Promise<ReadonlyMap<SandboxState, number>> {
      const rows = await db
        .selectFrom("sandboxes")
        .select((select) => ["state", select.fn.countAll<number | string>().as("count")])
        .where("state", "!=", "gone")
        .groupBy("state")
        .execute();
      return new Map(rows.map(({ state, count }) => [state, Number(count)]));
    },

    /**
     * Deletes at most `limit` sandboxes that ended before `before`, the oldest first. Those that were started from a
     * snapshot which still exists stay until `usesBefore`: the snapshot's lifetime begins with their end.
     */
    async forget(old: {
      readonly before: number;
      readonly usesBefore: number;
      readonly limit: number;
    }): Promise<number> {
      const result = await db
        .deleteFrom("sandboxes")
        .where("id", "in", (from) =>
          from
            .selectFrom("sandboxes as ended")
            .select("ended.id")
            .where("ended.state", "=", "gone")
            .where("ended.ended_at", "<", old.before)
            .where((where) =>
              where.or([
                where("ended.ended_at", "<", old.usesBefore),
                where.not(
                  where.exists(
                    where
                      .selectFrom("builds")
                      .select("builds.id")
                      .whereRef("builds.id", "=", "ended.build_id")
                      .where("builds.kind", "=", "snapshot"),
                  ),
                ),
              ]),
            )
            .orderBy("ended.ended_at")
            .limit(old.limit),
        )
        .executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}

async function lockProjectOf(session: Session, id: string): Promise<void> {
  if (!isPostgres(session)) return;
  const row = await session.selectFrom("sandboxes").select("project_id").where("id", "=", id).executeTakeFirst();
  if (row !== undefined) await lock(session, locks.project(row.project_id));
}

async function insert(
  session: Session,
  {
    sandbox,
    table,
    limit,
    now,
  }: { readonly sandbox: NewSandbox; readonly table: SandboxTable; readonly limit: StartLimits; readonly now: number },
): Promise<boolean> {
  const columns = Object.entries(table.toRow(sandbox));
  const terms = {
    project: sql`${sandbox.projectId}`,
    cpuCount: sql`${sandbox.cpuCount}`,
    memoryMB: sql`${sandbox.memoryMB}`,
    diskSizeMB: sql`${sandbox.diskSizeMB}`,
  };
  const { rows } = await sql<{ id: string }>`
    insert into sandboxes (${sql.join(columns.map(([name]) => sql.ref(name)))})
    select ${sql.join(columns.map(([, value]) => sql`${value}`))}
    where ${mayStart(terms, limit, now)}
    returning id`.execute(session);
  return rows.length === 1;
}
