/** The last report of each node, so that every orchestrator knows the nodes, also after a restart. The only SQL on nodes. */

import { sql } from "kysely";
import type { NodeFacts, NodeLoad } from "../../../shared/agent-api/routes.ts";
import type { NodeContents } from "../../../shared/api/nodes/nodes.ts";
import type { Changes } from "../changes/changes.ts";
import { CLOCK } from "../membership/clock.ts";
import { LIVE } from "../projects/use.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type NodeRecord, nodeTable } from "./record.ts";

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

interface NodeStoreDeps {
  readonly now: () => number;
  readonly changes: Changes;
  /** No other process writes rows, so its clock is as good as the database's. */
  readonly alone: boolean;
}

export function nodeStore(db: Database, { now, changes, alone }: NodeStoreDeps) {
  const clock = () => (alone ? sql<number>`${now()}` : CLOCK);

  async function write(session: Session, facts: NodeFacts, load: NodeLoad, given: Omit<ReportFacts, "news">) {
    const { keyId, refusal } = given;
    const at = now();
    const first = { id: facts.nodeId, wanted: "ready", wantedAt: at, firstSeenAt: at, lastHeartbeatAt: at } as const;
    const row = await session
      .insertInto("nodes")
      .values({ ...nodeTable.toRow({ facts, load, ...first, keyId, refusal }), last_heartbeat_at: clock() })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet({
          ...nodeTable.toColumns({ facts, load, keyId: keyId ?? null, refusal: refusal ?? null }),
          last_heartbeat_at: clock(),
        }),
      )
      .returning("last_heartbeat_at")
      .executeTakeFirstOrThrow();
    return row.last_heartbeat_at;
  }

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

    /** Returns the time of the report, by the database's clock. */
    async report(facts: NodeFacts, load: NodeLoad, { news, ...given }: ReportFacts): Promise<number> {
      if (!news) return write(db, facts, load, given);
      return inTransaction(db, async (session) => {
        await changes.note(session, "node", facts.nodeId);
        return write(session, facts, load, given);
      });
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
        .where("node_id", "=", id)
        .where("state", "in", [...LIVE, "paused"])
        .groupBy("state")
        .execute();
      const counted = (paused: boolean) =>
        states
          .filter(({ state }) => (state === "paused") === paused)
          .reduce((sum, { count }) => sum + Number(count), 0);
      const builds = await db
        .selectFrom("builds")
        .select((select) => ["kind", select.fn.countAll<number | string>().as("count")])
        .where("node_id", "=", id)
        .where("status", "=", "ready")
        .where("kind", "in", ["snapshot", "template"])
        .groupBy("kind")
        .execute();
      const ofKind = (wanted: string) => Number(builds.find(({ kind }) => kind === wanted)?.count ?? 0);
      const volumes = await db
        .selectFrom("volumes")
        .select((select) => select.fn.countAll<number | string>().as("count"))
        .where("node_id", "=", id)
        .executeTakeFirstOrThrow();
      return {
        sandboxes: counted(false),
        pausedSandboxes: counted(true),
        snapshots: ofKind("snapshot"),
        volumes: Number(volumes.count),
        templates: ofKind("template"),
      };
    },

    /** Deletes the node's row, and those of what it alone has: its volumes, and builds that it was to remove. */
    async remove(id: string): Promise<void> {
      await inTransaction(db, async (session) => {
        await session.deleteFrom("volumes").where("node_id", "=", id).execute();
        await session.deleteFrom("build_removals").where("node_id", "=", id).execute();
        await session.deleteFrom("nodes").where("id", "=", id).execute();
        await changes.note(session, "node", id);
      });
    },

    /** Resolves when every orchestrator knows it. */
    async setWanted(id: string, wanted: NodeRecord["wanted"], at: number): Promise<void> {
      await changes.throughout(async (session) => {
        await session
          .updateTable("nodes")
          .set(nodeTable.toColumns({ wanted, wantedAt: at }))
          .where("id", "=", id)
          .execute();
        await changes.note(session, "node", id);
      });
    },
  };
}
