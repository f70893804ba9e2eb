/** The last report of each node, so that a restarted orchestrator knows the nodes. The only SQL on nodes. */

import type { NodeFacts, NodeLoad } from "../../../shared/agent-api/routes.ts";
import type { Database } from "../tables.ts";
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

    async setWanted(id: string, wanted: NodeRecord["wanted"], at: number): Promise<void> {
      await db
        .updateTable("nodes")
        .set(nodeTable.toColumns({ wanted, wantedAt: at }))
        .where("id", "=", id)
        .execute();
    },
  };
}
