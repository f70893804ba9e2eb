/**
 * The SQL that adds up what a project stores: its paused sandboxes, its snapshots, forks under way, and what is promised to
 * snapshots under way. As a condition of a move it keeps concurrent snapshots within the quota.
 */

import { type RawBuilder, sql } from "kysely";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Session } from "../tables.ts";

/** What a new snapshot needs of its project's quota. */
export interface Room {
  readonly bytes: number;
  readonly quotaBytes: number;
}

/** Sandboxes that may have a snapshot. A node deletes the snapshots of the others. */
const KEPT: readonly SandboxState[] = ["starting", "running", "pausing", "paused", "snapshotting", "rewinding"];
/** States in which the stored disk is no running sandbox's disk: paused, being resumed, or paused and being rewound. */
const AT_REST: readonly SandboxState[] = ["paused", "starting", "rewinding"];

/** The disk of a sandbox that runs again is in use, so only the memory of its former snapshot is stored. */
function storedBy(project: RawBuilder<unknown>): RawBuilder<number> {
  return sql<number>`(
    (select coalesce(sum(
        coalesce(other.snapshot_memory_bytes, 0) + coalesce(other.pending_snapshot_bytes, 0)
        + case when other.state in (${sql.join([...AT_REST])}) then coalesce(other.snapshot_disk_bytes, 0) else 0 end
      ), 0)
      from sandboxes as other
      where other.project_id = ${project} and other.state in (${sql.join([...KEPT])}))
    + (select coalesce(sum(coalesce(snap.stored_memory_bytes, 0) + coalesce(snap.stored_disk_bytes, 0)), 0)
      from templates as kind join builds as snap on snap.template_id = kind.id
      where kind.project_id = ${project} and kind.kind = 'snapshot' and snap.kind = 'snapshot')
    + (select coalesce(sum(coalesce(fork.stored_memory_bytes, 0) + coalesce(fork.stored_disk_bytes, 0)), 0)
      from sandboxes as source join builds as fork on fork.source_sandbox_id = source.id
      where source.project_id = ${project} and source.state in (${sql.join([...KEPT])}) and fork.kind = 'fork'))`;
}

/** For an update of `sandboxes`: the new snapshot of the row fits the quota of the row's project. */
export function fits({ bytes, quotaBytes }: Room): RawBuilder<boolean> {
  return sql<boolean>`${storedBy(sql.ref("sandboxes.project_id"))} + ${bytes} <= ${quotaBytes}`;
}

export async function projectBytes(session: Session, projectId: string): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`select ${storedBy(sql`${projectId}`)} as bytes`.execute(session);
  return rows[0]?.bytes ?? 0;
}
