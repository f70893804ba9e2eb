/** The last report of each node, so that a restarted orchestrator knows the nodes. The only SQL on nodes. */

import type { NodeFacts, NodeLoad } from "../../../shared/agent-api/routes.ts";
import type { NodeContents } from "../../../shared/api/nodes/nodes.ts";
import { LIVE } from "../projects/use.ts";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type NodeRecord, nodeTable } from "./record.ts";

export type NodeStore = ReturnType<typeof nodeStore>;

export function nodeStore(db: Database) {
  return {
    async list(): Promise<NodeRecord[]> {
      return (await db.selectFrom("nodes").selectAll().execute()).map(nodeTable.toRecord);
    },

    async report(
      facts: NodeFacts,
      load: NodeLoad,
      { at, keyId }: { readonly at: number; readonly keyId: string | undefined },
    ): Promise<void> {
      const reported = { facts, load, lastHeartbeatAt: at };
      const first = { id: facts.nodeId, wanted: "ready", wantedAt: at, firstSeenAt: at } as const;
      await db
        .insertInto("nodes")
        .values(nodeTable.toRow({ ...reported, ...first, keyId }))
        .onConflict((conflict) =>
          conflict.column("id").doUpdateSet(nodeTable.toColumns({ ...reported, keyId: keyId ?? null })),
        )
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
      });
    },

    async setWanted(id: string, wanted: NodeRecord["wanted"], at: number): Promise<void> {
      await db
        .updateTable("nodes")
        .set(nodeTable.toColumns({ wanted, wantedAt: at }))
        .where("id", "=", id)
        .execute();
    },
  };
}
