/** SQL on volumes and on what mounts them. */

import { sql } from "kysely";
import { AppError } from "../../../shared/http/errors.ts";
import { givenUpAmong, noteGivenUp } from "../given-up.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type Volume, type VolumeMount, volumeTable } from "./record.ts";

export interface VolumeLimits {
  readonly count: number;
  /** Of all volumes of the project together; 0: no limit. */
  readonly totalMb: number;
}

/** Why a volume was not added. */
export type NotAdded =
  | { readonly is: "duplicate" }
  | { readonly is: "full"; readonly of: "count" | "size"; readonly used: number };

/** Ids of what mounts a volume. */
interface Users {
  readonly sandboxes: readonly string[];
  readonly snapshots: readonly string[];
}

export type VolumeStore = ReturnType<typeof volumeStore>;

export function volumeStore(db: Database, now: () => number) {
  const set = async (session: Session, id: string, to: Volume["state"], from: readonly Volume["state"][]) => {
    const result = await session
      .updateTable("volumes")
      .set({ state: to, updated_at: now() })
      .where("id", "=", id)
      .where("state", "in", from)
      .executeTakeFirst();
    return result.numUpdatedRows === 1n;
  };

  return {
    /** In state `creating`, or `ready` when its node has it already. Undefined: it was added. */
    async add(
      volume: Omit<Volume, "state">,
      limits: VolumeLimits,
      state: "creating" | "ready" = "creating",
    ): Promise<NotAdded | undefined> {
      return inTransaction(db, async (session) => {
        // Locks the project, so that two volumes at a time do not exceed a limit together.
        await sql`update projects set name = name where id = ${volume.projectId}`.execute(session);
        const mine = session.selectFrom("volumes").where("project_id", "=", volume.projectId);
        const same = mine.select("id").where("name", "=", volume.name).where("state", "!=", "deleting");
        if ((await same.executeTakeFirst()) !== undefined) return { is: "duplicate" };
        const { count, total } = await mine
          .select((select) => [
            select.fn.countAll<number | string>().as("count"),
            select.fn.sum<number | string | null>("size_mb").as("total"),
          ])
          .executeTakeFirstOrThrow();
        if (Number(count) >= limits.count) return { is: "full", of: "count", used: Number(count) };
        if (limits.totalMb > 0 && Number(total ?? 0) + volume.sizeMb > limits.totalMb)
          return { is: "full", of: "size", used: Number(total ?? 0) };
        const at = now();
        await session
          .insertInto("volumes")
          .values(volumeTable.toRow({ ...volume, state, createdAt: at, updatedAt: at }))
          .execute();
        return undefined;
      });
    },

    /** Its node has made it. False: its deletion has begun meanwhile. */
    markReady: (id: string) => inTransaction(db, (session) => set(session, id, "ready", ["creating"])),

    /** Gives up one that its node has not made. */
    giveUp: (id: string) =>
      inTransaction(db, async (session) => {
        const isGivenUp = await set(session, id, "deleting", ["creating"]);
        if (isGivenUp) await noteGivenUp(session, id, now());
        return isGivenUp;
      }),

    /** Those of these that were given up: they were never ready, and nobody has written to them. */
    givenUp: (ids: readonly string[]) => givenUpAmong(db, ids),

    async get(id: string): Promise<Volume | undefined> {
      const row = await db.selectFrom("volumes").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : volumeTable.toRecord(row);
    },

    /** In any state: those that this node has or is about to have. */
    async onNode(nodeId: string): Promise<Volume[]> {
      return (await db.selectFrom("volumes").selectAll().where("node_id", "=", nodeId).execute()).map(
        volumeTable.toRecord,
      );
    },

    /** In any state: those of a project whose files a node may have. */
    async count(projectId: string): Promise<number> {
      const { count } = await db
        .selectFrom("volumes")
        .select((select) => select.fn.countAll<number | string>().as("count"))
        .where("project_id", "=", projectId)
        .executeTakeFirstOrThrow();
      return Number(count);
    },

    /** Those that can be used, the oldest first. */
    async list(projectId: string): Promise<Volume[]> {
      const rows = await db
        .selectFrom("volumes")
        .selectAll()
        .where("project_id", "=", projectId)
        .where("state", "=", "ready")
        .orderBy("created_at")
        .orderBy("id")
        .execute();
      return rows.map(volumeTable.toRecord);
    },

    /**
     * Begins the deletion unless something mounts the volume: then nothing changes, and the answer names it. Undefined: there
     * is no such volume.
     */
    async beginDeletion(id: string): Promise<Users | undefined> {
      try {
        return await inTransaction(db, async (session) => {
          // First, because it locks the row: a sandbox that is created meanwhile is seen below, or does not find the volume.
          if (!(await set(session, id, "deleting", ["ready"]))) return undefined;
          const sandboxes = await session
            .selectFrom("volume_uses")
            .innerJoin("sandboxes", "sandboxes.id", "volume_uses.sandbox_id")
            .select("sandboxes.id")
            .where("volume_uses.volume_id", "=", id)
            .where("sandboxes.state", "!=", "gone")
            .orderBy("sandboxes.id")
            .execute();
          const snapshots = await session
            .selectFrom("volume_uses")
            .innerJoin("builds", "builds.id", "volume_uses.build_id")
            .select("builds.template_id as id")
            .distinct()
            .where("volume_uses.volume_id", "=", id)
            .orderBy("id")
            .execute();
          const used = { sandboxes: sandboxes.map((row) => row.id), snapshots: snapshots.map((row) => row.id) };
          if (sandboxes.length + snapshots.length > 0) throw new InUse(used);
          return used;
        });
      } catch (error) {
        if (error instanceof InUse) return error.used;
        throw error;
      }
    },

    /** Its node has deleted it. */
    async forget(id: string): Promise<void> {
      await db.deleteFrom("volumes").where("id", "=", id).where("state", "=", "deleting").execute();
    },

    /** Volumes that have been in these states since before these times. */
    async unfinished(before: Readonly<Record<"creating" | "deleting", number>>, limit: number): Promise<Volume[]> {
      const rows = await db
        .selectFrom("volumes")
        .selectAll()
        .where((where) =>
          where.or(
            (["creating", "deleting"] as const).map((state) =>
              where.and([where("state", "=", state), where("updated_at", "<=", before[state])]),
            ),
          ),
        )
        .orderBy("updated_at")
        .limit(limit)
        .execute();
      return rows.map(volumeTable.toRecord);
    },

    /** A repair failed: others come first. */
    async postpone(id: string): Promise<void> {
      await db.updateTable("volumes").set({ updated_at: now() }).where("id", "=", id).execute();
    },

    async countByState(): Promise<ReadonlyMap<string, { readonly count: number; readonly sizeMb: number }>> {
      const rows = await db
        .selectFrom("volumes")
        .select((select) => [
          "state",
          select.fn.countAll<number | string>().as("count"),
          select.fn.sum<number | string>("size_mb").as("total"),
        ])
        .groupBy("state")
        .execute();
      return new Map(rows.map(({ state, count, total }) => [state, { count: Number(count), sizeMb: Number(total) }]));
    },
  };
}

/**
 * Records that a sandbox or a snapshot mounts these volumes, in the transaction that adds it: none of them can be deleted from
 * then on. @throws {AppError} conflict when one is being deleted
 */
export async function addUses(
  session: Session,
  mounts: readonly VolumeMount[],
  by: { readonly sandbox_id: string } | { readonly build_id: string },
): Promise<void> {
  for (const volumeId of [...new Set(mounts.map((mount) => mount.volumeId))].sort()) {
    // Locks the row against a deletion.
    const locked = await session
      .updateTable("volumes")
      .set((update) => ({ state: update.ref("state") }))
      .where("id", "=", volumeId)
      .where("state", "=", "ready")
      .executeTakeFirst();
    if (locked.numUpdatedRows !== 1n) {
      const name = mounts.find((mount) => mount.volumeId === volumeId)?.name ?? volumeId;
      throw new AppError("conflict", `volume '${name}' is being deleted`);
    }
    await session
      .insertInto("volume_uses")
      .values({ sandbox_id: null, build_id: null, ...by, volume_id: volumeId })
      .execute();
  }
}

class InUse extends Error {
  readonly used: Users;

  constructor(used: Users) {
    super();
    this.used = used;
  }
}
