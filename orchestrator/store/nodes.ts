/** The last report of each node, so that a restarted orchestrator knows the nodes. The only SQL on nodes. */

import type { NodeFacts, NodeLoad } from "../../shared/agent-api/routes.ts";
import type { Database, NodeRow } from "./tables.ts";

export interface NodeRecord {
  readonly facts: NodeFacts;
  readonly load: NodeLoad;
  /** The status that the operator set. */
  readonly wanted: NodeRow["wanted"];
  readonly wantedAt: number;
  readonly lastHeartbeatAt: number;
  /** The key that its tokens were made from; null: not recorded. */
  readonly keyId: string | null;
}

export type NodeStore = ReturnType<typeof nodeStore>;

export function nodeStore(db: Database) {
  return {
    async list(): Promise<NodeRecord[]> {
      const rows = await db.selectFrom("nodes").selectAll().execute();
      return rows.map((row) => ({
        facts: JSON.parse(row.facts) as NodeFacts,
        load: JSON.parse(row.load) as NodeLoad,
        wanted: row.wanted,
        wantedAt: row.wanted_at,
        lastHeartbeatAt: row.last_heartbeat_at,
        keyId: row.key_id,
      }));
    },

    async report(
      facts: NodeFacts,
      load: NodeLoad,
      { at, keyId }: { readonly at: number; readonly keyId: string | undefined },
    ): Promise<void> {
      const said = {
        facts: JSON.stringify(facts),
        load: JSON.stringify(load),
        last_heartbeat_at: at,
        key_id: keyId ?? null,
      };
      await db
        .insertInto("nodes")
        .values({ id: facts.nodeId, ...said, wanted: "ready", wanted_at: at, first_seen_at: at })
        .onConflict((conflict) => conflict.column("id").doUpdateSet(said))
        .execute();
    },

    async want(id: string, wanted: NodeRow["wanted"], at: number): Promise<void> {
      await db.updateTable("nodes").set({ wanted, wanted_at: at }).where("id", "=", id).execute();
    },
  };
}
