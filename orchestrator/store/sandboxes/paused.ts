/** SQL on paused sandboxes: which of them traffic may resume, and which snapshots of a node are still needed. */

import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Database } from "../tables.ts";

/** Variables in one statement: fewer than the smallest limit of both databases. */
const CHUNK = 500;
/** The states in which a sandbox needs its snapshots. Named one by one, so that the index over node and state serves. */
const NEEDING: readonly SandboxState[] = ["starting", "running", "pausing", "paused", "snapshotting", "rewinding"];

export function pausedSandboxStore(db: Database) {
  return {
    /** The snapshots that records of a node's sandboxes name, and which are needed as long as those have not ended. */
    async snapshotsOn(nodeId: string): Promise<ReadonlySet<string>> {
      const rows = await db
        .selectFrom("sandboxes")
        .select(["snapshot_id", "pending_snapshot_id"])
        .where("node_id", "=", nodeId)
        .where("state", "in", NEEDING)
        .execute();
      const named = rows.flatMap((row) => [row.snapshot_id, row.pending_snapshot_id]);
      return new Set(named.filter((id) => id !== null));
    },

    /** The snapshots of `ids` that a record or a build still needs. */
    async wanted(ids: readonly string[]): Promise<ReadonlySet<string>> {
      const wanted = new Set<string>();
      for (let at = 0; at < ids.length; at += CHUNK) {
        const some = ids.slice(at, at + CHUNK);
        const rows = await db
          .selectFrom("sandboxes")
          .select(["snapshot_id", "pending_snapshot_id"])
          .where("state", "not in", ["gone", "killing"])
          .where((where) => where.or([where("snapshot_id", "in", some), where("pending_snapshot_id", "in", some)]))
          .execute();
        for (const { snapshot_id: snapshot, pending_snapshot_id: pendingSnapshot } of rows) {
          if (snapshot !== null) wanted.add(snapshot);
          if (pendingSnapshot !== null) wanted.add(pendingSnapshot);
        }
        const builds = await db
          .selectFrom("builds")
          .select(["id", "snapshot_id"])
          .where((where) => where.or([where("id", "in", some), where("snapshot_id", "in", some)]))
          .execute();
        for (const { id, snapshot_id: snapshot } of builds) wanted.add(id).add(snapshot ?? id);
      }
      return wanted;
    },

    /** The snapshots that paused sandboxes of a node resume from. */
    async pausedOn(nodeId: string): Promise<{ readonly id: string; readonly snapshotId: string }[]> {
      const rows = await db
        .selectFrom("sandboxes")
        .select(["id", "snapshot_id"])
        .where("node_id", "=", nodeId)
        .where("state", "=", "paused")
        .execute();
      return rows.flatMap(({ id, snapshot_id: snapshotId }) => (snapshotId === null ? [] : [{ id, snapshotId }]));
    },

    /** The paused sandboxes that traffic may resume, and at most `others` that it may not, the last paused. */
    async signers(others: number): Promise<{ readonly id: string; readonly seedId: string | undefined }[]> {
      const paused = db
        .selectFrom("sandboxes")
        .select(["id", "seed_id"])
        .where("state", "in", ["pausing", "paused", "starting"]);
      const resumable = await paused.where("auto_resume", "=", 1).execute();
      const rest = await paused.where("auto_resume", "=", 0).orderBy("end_at", "desc").limit(others).execute();
      return [...resumable, ...rest].map(({ id, seed_id: seedId }) => ({ id, seedId: seedId ?? undefined }));
    },

    /** Whether a sandbox that has not ended was started from this template. */
    async usesTemplate(templateId: string, buildId?: string): Promise<boolean> {
      let query = db
        .selectFrom("sandboxes")
        .select("id")
        .where("template_id", "=", templateId)
        .where("state", "!=", "gone");
      if (buildId !== undefined) query = query.where("build_id", "=", buildId);
      return (await query.limit(1).executeTakeFirst()) !== undefined;
    },
  };
}
