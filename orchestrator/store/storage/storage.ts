/** SQL on what paused sandboxes and snapshots store: what a project stores, what is old, and sizes that nodes report later. */

import { sql } from "kysely";
import { buildSize } from "../builds/record.ts";
import type { EventSubject } from "../events/event-data.ts";
import { lockAll, locks } from "../locks.ts";
import { snapshotSize } from "../sandboxes/record.ts";
import type { Database, Session } from "../tables.ts";
import { projectBytes } from "./quota.ts";
import type { StoredBytes } from "./stored-bytes.ts";
import { type TemplateBuild, templateBuilds } from "./template-builds.ts";

/** A paused sandbox or a snapshot, with what an operator decides by. */
export interface StoredItem {
  readonly kind: "paused" | "snapshot";
  /** Of the sandbox, or of the snapshot. */
  readonly id: string;
  readonly projectId: string;
  readonly templateId: string;
  readonly nodeId: string | undefined;
  /** The paused sandbox, or the one that the snapshot was taken of: without an execution when its record is not kept. */
  readonly sandbox: EventSubject;
  /** Id of the snapshot on its node. */
  readonly snapshotId: string;
  readonly size: StoredBytes | undefined;
  /** The pause, or the last use of the snapshot: its taking, or the end of a sandbox that started from it. */
  readonly unusedSince: number;
  /** A sandbox that was started from the snapshot has not ended, or a build that is based on it is under way. */
  readonly inUse: boolean;
}

interface Reported extends StoredBytes {
  readonly snapshotId: string;
}

interface Which {
  readonly old?: Old;
  readonly nodeId?: string;
  readonly snapshotId?: string;
}

export interface Old {
  readonly before: number;
  readonly limit: number;
}

export type StorageStore = ReturnType<typeof storageStore>;

export function storageStore(db: Database) {
  return {
    /** Stored bytes of a project on all nodes, with what is promised to snapshots under way. */
    projectBytes: (projectId: string): Promise<number> => projectBytes(db, projectId),

    /** Sandboxes that were paused before a time, the oldest first. */
    pausedBefore: (old: Old): Promise<StoredItem[]> => paused(db, { old }),

    /** Every paused sandbox and every snapshot. */
    async all(): Promise<StoredItem[]> {
      return [...(await paused(db)), ...(await snapshots(db))];
    },

    /** The paused sandbox, or the snapshot, that is stored under this id. */
    async find(snapshotId: string): Promise<StoredItem | undefined> {
      const [item] = [...(await paused(db, { snapshotId })), ...(await snapshots(db, { snapshotId }))];
      return item;
    },

    /** Every build of a template that sandboxes start from. */
    templateBuilds: (): Promise<TemplateBuild[]> => templateBuilds(db),

    /** Writes the reported sizes of snapshots whose size the records do not have. */
    async fillSizes(nodeId: string, reported: readonly Reported[]): Promise<void> {
      const sizes = new Map(reported.map((each) => [each.snapshotId, each]));
      const unknown = await db
        .selectFrom("sandboxes")
        .select(["id", "snapshot_id"])
        .where("node_id", "=", nodeId)
        .where("state", "in", ["paused", "starting", "running", "snapshotting", "rewinding"])
        .where("snapshot_id", "is not", null)
        .where("snapshot_memory_bytes", "is", null)
        .execute();
      for (const { id, snapshot_id: snapshotId } of unknown) {
        const size = snapshotId === null ? undefined : sizes.get(snapshotId);
        if (size === undefined) continue;
        await db
          .updateTable("sandboxes")
          .set({ snapshot_memory_bytes: size.memoryBytes, snapshot_disk_bytes: size.diskBytes })
          .where("id", "=", id)
          .where("snapshot_id", "=", snapshotId)
          .execute();
      }
      const builds = await db
        .selectFrom("builds")
        .select("id")
        .where("kind", "=", "snapshot")
        .where("node_id", "=", nodeId)
        .where("status", "=", "ready")
        .where("stored_memory_bytes", "is", null)
        .execute();
      for (const { id } of builds) {
        const size = sizes.get(id);
        if (size === undefined) continue;
        await db
          .updateTable("builds")
          .set({ stored_memory_bytes: size.memoryBytes, stored_disk_bytes: size.diskBytes })
          .where("id", "=", id)
          .execute();
      }
    },

    /**
     * Deletes the records of snapshots that have not been used since a time, with templates that have no other snapshot.
     * Their nodes delete the files when they are asked, or after their next reports.
     */
    async dropUnused(session: Session, old: Old): Promise<StoredItem[]> {
      return drop(session, await snapshots(session, { old }));
    },

    /** Deletes the records of all snapshots that are on a node only, in the same way. */
    async dropOn(session: Session, nodeId: string): Promise<StoredItem[]> {
      const found = await snapshots(session, { nodeId });
      const stored = await session
        .selectFrom("blob_refs")
        .select("snapshot_id")
        .where("dropped_at", "is", null)
        .execute();
      const elsewhere = new Set(stored.map(({ snapshot_id: id }) => id));
      return drop(
        session,
        found.filter(({ snapshotId }) => !elsewhere.has(snapshotId)),
      );
    },
  };
}

/** @param found snapshots of this transaction's reading */
async function drop(session: Session, found: StoredItem[]): Promise<StoredItem[]> {
  if (found.length === 0) return found;
  await lockAll(
    session,
    found.map(({ templateId }) => locks.template(templateId)),
  );
  const deleted = await session
    .deleteFrom("builds")
    .where(
      "id",
      "in",
      found.map(({ id }) => id),
    )
    .returning("id")
    .execute();
  // Another process may have deleted some of them, and written their events.
  const mine = new Set(deleted.map(({ id }) => id));
  const items = found.filter(({ id }) => mine.has(id));
  await session
    .deleteFrom("templates")
    .where("id", "in", [...new Set(items.map(({ templateId }) => templateId))])
    .where("kind", "=", "snapshot")
    .where((where) =>
      where.not(
        where.exists(
          where.selectFrom("builds").select("builds.id").whereRef("builds.template_id", "=", "templates.id"),
        ),
      ),
    )
    .execute();
  return items;
}

/** A pause sets the end of its sandbox, which nothing changes before the sandbox runs again. */
async function paused(session: Session, { old, snapshotId }: Omit<Which, "nodeId"> = {}): Promise<StoredItem[]> {
  let query = session
    .selectFrom("sandboxes")
    .select(["id", "project_id", "template_id", "build_id", "node_id", "execution_id", "end_at"])
    .select(["snapshot_id", "snapshot_memory_bytes", "snapshot_disk_bytes"])
    .where("state", "=", "paused")
    .where("snapshot_id", "is not", null)
    .orderBy("end_at")
    .orderBy("id");
  if (snapshotId !== undefined) query = query.where("snapshot_id", "=", snapshotId);
  if (old !== undefined) query = query.where("end_at", "<=", old.before).limit(old.limit);
  return (await query.execute()).map((row) => ({
    kind: "paused",
    id: row.id,
    projectId: row.project_id,
    templateId: row.template_id,
    nodeId: row.node_id,
    sandbox: {
      id: row.id,
      projectId: row.project_id,
      executionId: row.execution_id,
      templateId: row.template_id,
      buildId: row.build_id,
    },
    snapshotId: row.snapshot_id ?? "",
    size: snapshotSize.read(row),
    unusedSince: row.end_at,
    inUse: false,
  }));
}

/** With `old` only those that are unused since then, with `nodeId` only those of the node. */
async function snapshots(session: Session, { old, nodeId, snapshotId }: Which = {}): Promise<StoredItem[]> {
  const inUse = sql<number>`(case when
    exists (select 1 from sandboxes as used where used.build_id = snap.id and used.state <> 'gone')
    or exists (select 1 from builds as child where child.parent_build_id = snap.id and child.status = 'building')
    then 1 else 0 end)`;
  const endedAt = sql<number>`coalesce(
    (select max(used.ended_at) from sandboxes as used where used.build_id = snap.id and used.state = 'gone'), 0)`;
  let query = session
    .selectFrom("builds as snap")
    .innerJoin("templates", "templates.id", "snap.template_id")
    .leftJoin("sandboxes as source", "source.id", "snap.source_sandbox_id")
    .select(["snap.id", "snap.template_id", "snap.node_id", "snap.source_sandbox_id", "snap.finished_at"])
    .select(["snap.stored_memory_bytes", "snap.stored_disk_bytes", "templates.project_id", "source.execution_id"])
    .select(["source.template_id as source_template_id", "source.build_id as source_build_id"])
    .select([inUse.as("in_use"), endedAt.as("ended_at")])
    .where("snap.kind", "=", "snapshot")
    .where("snap.status", "=", "ready")
    .where("templates.project_id", "is not", null)
    .orderBy("snap.finished_at")
    .orderBy("snap.id");
  if (nodeId !== undefined) query = query.where("snap.node_id", "=", nodeId);
  if (snapshotId !== undefined) query = query.where("snap.id", "=", snapshotId);
  if (old !== undefined) {
    query = query
      .where("snap.finished_at", "<=", old.before)
      .where(endedAt, "<=", old.before)
      .where(inUse, "=", 0)
      .limit(old.limit);
  }
  return (await query.execute()).map((row) => ({
    kind: "snapshot",
    id: row.id,
    projectId: row.project_id ?? "",
    templateId: row.template_id,
    nodeId: row.node_id ?? undefined,
    sandbox: {
      id: row.source_sandbox_id ?? "",
      projectId: row.project_id ?? "",
      executionId: row.execution_id ?? "",
      templateId: row.source_template_id ?? row.template_id,
      buildId: row.source_build_id ?? row.id,
    },
    snapshotId: row.id,
    size: buildSize.read(row),
    unusedSince: Math.max(row.finished_at ?? 0, row.ended_at),
    inUse: row.in_use === 1,
  }));
}
