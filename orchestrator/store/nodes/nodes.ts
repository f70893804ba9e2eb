/** The last report of each node, so that every orchestrator knows the nodes, also after a restart. The only SQL on nodes. */

import { type RawBuilder, sql } from "kysely";
import type { NodeFacts } from "../../../shared/agent-api/routes.ts";
import type { NodeContents } from "../../../shared/api/nodes/nodes.ts";
import type { AuditStore } from "../audit/audit.ts";
import type { Changes } from "../changes/changes.ts";
import { isPostgres } from "../locks.ts";
import { CLOCK } from "../membership/clock.ts";
import { LIVE } from "../projects/use.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { gatherWrites } from "./gathering.ts";
import { addNodeEvent } from "./node-events.ts";
import { type NodeRecord, nodeTable, type ReportedLoad } from "./record.ts";

export type NodeStore = ReturnType<typeof nodeStore>;

/** What changes most in a node's row. */
export interface Standing extends Pick<NodeRecord, "wanted" | "lastHeartbeatAt"> {
  readonly id: string;
}

interface ReportFacts {
  readonly keyId: string | undefined;
  readonly refusal: string | undefined;
  /** Whether the other orchestrators need to know at once. */
  readonly news: boolean;
}

interface Report extends Omit<ReportFacts, "news"> {
  readonly facts: NodeFacts;
  readonly load: ReportedLoad;
}

/** Rows of one statement. */
const MOST_ROWS = 100;

interface NodeStoreDeps {
  readonly now: () => number;
  readonly changes: Changes;
  readonly audit: Pick<AuditStore, "note">;
  /** No other process writes rows, so its clock is as good as the database's. */
  readonly alone: boolean;
}

export function nodeStore(db: Database, { now, changes, audit, alone }: NodeStoreDeps) {
  const clock = () => (alone ? sql<number>`cast(${now()} as bigint)` : CLOCK);

  /** Returns the time of each report. */
  async function write(session: Session, reports: readonly Report[]): Promise<ReadonlyMap<string, number>> {
    const at = now();
    const rows = reports.map((report) => ({
      ...nodeTable.toRow({
        ...report,
        id: report.facts.nodeId,
        wanted: "ready",
        wantedAt: at,
        firstSeenAt: at,
        lastHeartbeatAt: at,
      }),
      last_heartbeat_at: clock(),
    }));
    const written = await session
      .insertInto("nodes")
      .values(rows)
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet((update) => ({
          facts: update.ref("excluded.facts"),
          load: update.ref("excluded.load"),
          key_id: update.ref("excluded.key_id"),
          refusal: update.ref("excluded.refusal"),
          last_heartbeat_at: update.ref("excluded.last_heartbeat_at"),
        })),
      )
      .returning(["id", "last_heartbeat_at"])
      .execute();
    return new Map(written.map((row) => [row.id, row.last_heartbeat_at]));
  }

  async function writeOne(session: Session, report: Report): Promise<number> {
    const [at] = (await write(session, [report])).values();
    if (at === undefined) throw new Error(`the report of node ${report.facts.nodeId} was not written`);
    return at;
  }

  const noteOf = (session: Parameters<AuditStore["note"]>[0], action: string, id: string) =>
    audit.note(session, { at: now(), action, projectId: undefined, object: { kind: "node", id } });

  /** Many nodes report to an orchestrator, and each answer waits for the server. */
  const writeTogether = gatherWrites<Report, number>({
    keyOf: ({ facts }) => facts.nodeId,
    // In one order, so that two orchestrators that write the same rows do not wait for each other.
    write: (reports) =>
      write(
        db,
        reports.toSorted((a, b) => (a.facts.nodeId < b.facts.nodeId ? -1 : 1)),
      ),
    most: MOST_ROWS,
  });

  return {
    async list(): Promise<NodeRecord[]> {
      return (await db.selectFrom("nodes").selectAll().execute()).map(nodeTable.toRecord);
    },

    async getMany(ids: readonly string[]): Promise<NodeRecord[]> {
      if (ids.length === 0) return [];
      return (await db.selectFrom("nodes").selectAll().where("id", "in", ids).execute()).map(nodeTable.toRecord);
    },

    async standings(): Promise<Standing[]> {
      const rows = await db.selectFrom("nodes").select(["id", "wanted", "last_heartbeat_at"]).execute();
      return rows.map(({ id, wanted, last_heartbeat_at: lastHeartbeatAt }) => ({ id, wanted, lastHeartbeatAt }));
    },

    /** Those that no orchestrator has heard for so long, by the database's clock. */
    async silentFor(ms: number): Promise<string[]> {
      const silent = sql<boolean>`last_heartbeat_at < ${clock()} - ${ms}`;
      return (await db.selectFrom("nodes").select("id").where(silent).execute()).map(({ id }) => id);
    },

    /** Notes that the node, silent for so long, counts as lost. False: that is noted, or it has reported meanwhile. */
    async lose(id: string, ms: number): Promise<boolean> {
      return inTransaction(db, async (session) => {
        const { numUpdatedRows } = await session
          .updateTable("nodes")
          .set({ lost_at: clock() })
          .where("id", "=", id)
          .where(sql<boolean>`last_heartbeat_at < ${clock()} - ${ms}`)
          .where(sql<boolean>`(lost_at is null or lost_at < last_heartbeat_at)`)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        await addNodeEvent(session, { nodeId: id, kind: "lost", at: now() });
        await noteOf(session, "loseNode", id);
        return true;
      });
    },

    /** Those that count as lost now. */
    async lost(): Promise<string[]> {
      const rows = await db
        .selectFrom("nodes")
        .select("id")
        .where("lost_at", "is not", null)
        .whereRef("lost_at", ">=", "last_heartbeat_at")
        .execute();
      return rows.map(({ id }) => id);
    },

    /** A node has reported again. False: it was not lost. */
    async regain(id: string): Promise<boolean> {
      return inTransaction(db, async (session) => {
        const { numUpdatedRows } = await session
          .updateTable("nodes")
          .set({ lost_at: null })
          .where("id", "=", id)
          .where("lost_at", "is not", null)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        await noteOf(session, "regainNode", id);
        return true;
      });
    },

    /** Returns the time of the report, by the database's clock. */
    async report(facts: NodeFacts, load: ReportedLoad, { news, ...given }: ReportFacts): Promise<number> {
      const report = { facts, load, ...given };
      if (!news) return alone ? writeOne(db, report) : writeTogether(report);
      return inTransaction(db, async (session) => {
        await changes.note(session, "node", facts.nodeId);
        return writeOne(session, report);
      });
    },

    /** These nodes have reported what their rows say, no earlier than `at`. For the only process on its database. */
    async heard(ids: readonly string[], at: number): Promise<void> {
      for (let from = 0; from < ids.length; from += MOST_ROWS) {
        const some = ids.slice(from, from + MOST_ROWS);
        await db.updateTable("nodes").set({ last_heartbeat_at: at }).where("id", "in", some).execute();
      }
    },

    /** As the last orchestrator that heard the node has left it. */
    async suspicions(id: string): Promise<string | undefined> {
      const row = await db.selectFrom("nodes").select("suspicions").where("id", "=", id).executeTakeFirst();
      return row?.suspicions ?? undefined;
    },

    async suspect(id: string, suspicions: string | undefined): Promise<void> {
      await db
        .updateTable("nodes")
        .set({ suspicions: suspicions ?? null })
        .where("id", "=", id)
        .execute();
    },

    /** What the records say is on the node. */
    async contents(id: string): Promise<NodeContents> {
      const states = await db
        .selectFrom("sandboxes")
        .select((select) => ["state", select.fn.countAll<number | string>().as("count")])
        // Its volumes are on the node too.
        .select(countWhere(sql`volume_mounts is null and ${stored("sandboxes.snapshot_id")}`).as("stored"))
        .where("node_id", "=", id)
        .where("state", "in", [...LIVE, "paused"])
        .groupBy("state")
        .execute();
      const paused = states.find(({ state }) => state === "paused");
      const all = states.reduce((sum, { count }) => sum + Number(count), 0);
      const builds = await db
        .selectFrom("builds")
        .select((select) => ["kind", select.fn.countAll<number | string>().as("count")])
        .select(
          countWhere(
            sql`${stored("builds.id")} and (builds.snapshot_id is null or ${stored("builds.snapshot_id")})`,
          ).as("stored"),
        )
        .where("node_id", "=", id)
        .where("status", "=", "ready")
        .where("kind", "in", ["snapshot", "template"])
        .groupBy("kind")
        .execute();
      const ofKind = (wanted: string) => builds.find(({ kind }) => kind === wanted);
      const volumes = await db
        .selectFrom("volumes")
        .select((select) => select.fn.countAll<number | string>().as("count"))
        .where("node_id", "=", id)
        .executeTakeFirstOrThrow();
      const pausedSandboxes = Number(paused?.count ?? 0);
      return {
        sandboxes: all - pausedSandboxes,
        pausedSandboxes,
        snapshots: Number(ofKind("snapshot")?.count ?? 0),
        volumes: Number(volumes.count),
        templates: Number(ofKind("template")?.count ?? 0),
        inStore: {
          pausedSandboxes: Number(paused?.stored ?? 0),
          snapshots: Number(ofKind("snapshot")?.stored ?? 0),
          templates: Number(ofKind("template")?.stored ?? 0),
        },
      };
    },

    /** How many builds of templates each node works on. */
    async builds(): Promise<ReadonlyMap<string, number>> {
      const rows = await db
        .selectFrom("builds")
        .select((select) => ["node_id", select.fn.countAll<number | string>().as("count")])
        .where("kind", "=", "template")
        .where("status", "=", "building")
        .where("node_id", "is not", null)
        .groupBy("node_id")
        .execute();
      return new Map(rows.flatMap(({ node_id: id, count }) => (id === null ? [] : [[id, Number(count)]])));
    },

    /** Deletes the node's row, and those of what it alone has: its volumes, and builds that it was to remove. */
    async remove(id: string): Promise<void> {
      await inTransaction(db, async (session) => {
        await session.deleteFrom("volumes").where("node_id", "=", id).execute();
        await session.deleteFrom("build_removals").where("node_id", "=", id).execute();
        await session.deleteFrom("node_starts").where("node_id", "=", id).execute();
        await session.deleteFrom("nodes").where("id", "=", id).execute();
        await addNodeEvent(session, { nodeId: id, kind: "removed", at: now() });
        await changes.note(session, "node", id);
      });
    },

    /**
     * Resolves when every orchestrator knows it.
     * @param only nothing is set for a node whose drain has ended. False: that is so
     */
    async setWanted(id: string, wanted: NodeRecord["wanted"], at: number, only?: "while drained"): Promise<boolean> {
      return changes.throughout(async (session) => {
        if (only !== undefined && !(await isDrained(session, id))) return false;
        const former = await session.selectFrom("nodes").select("wanted").where("id", "=", id).executeTakeFirst();
        await session
          .updateTable("nodes")
          .set(nodeTable.toColumns({ wanted, wantedAt: at }))
          .where("id", "=", id)
          .execute();
        if (wanted !== "ready" && former !== undefined && former.wanted !== wanted)
          await addNodeEvent(session, { nodeId: id, kind: wanted === "draining" ? "cordoned" : wanted, at });
        await changes.note(session, "node", id);
        return true;
      });
    },
  };
}

/** Until the transaction ends, the drain does not end: whoever ends it decides what the node is after that. */
async function isDrained(session: Session, nodeId: string): Promise<boolean> {
  const drain = session
    .selectFrom("drains")
    .select("node_id")
    .where("node_id", "=", nodeId)
    .where("ended_at", "is", null);
  return (await (isPostgres(session) ? drain.forUpdate() : drain).executeTakeFirst()) !== undefined;
}

/** Whether the blob store has what this column names. */
function stored(column: string) {
  return sql<boolean>`exists (select 1 from blob_refs where blob_refs.snapshot_id = ${sql.ref(column)} and dropped_at is null)`;
}

function countWhere(condition: RawBuilder<unknown>) {
  return sql<number | string>`sum(case when ${condition} then 1 else 0 end)`;
}
