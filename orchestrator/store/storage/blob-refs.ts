/**
 * References of what is in the blob store: snapshots, the memory of templates, and the images of templates by their builds. A reference vouches for its blobs until it is dropped, and one that was
 * dropped is never taken again, because its blobs may be gone: the row stays as a note of that. The only SQL on
 * these tables.
 */

import type { ExpressionBuilder } from "kysely";
import { isRecordable } from "../../../shared/agent-api/blobs/blob-refs.ts";
import type { Database, Session, Tables } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import type { BlobRefRow } from "./blob-rows.ts";

export interface BlobRef {
  /** Of the snapshot, or of the build whose image it is. No two things have one id. */
  readonly id: string;
  readonly ref: string;
  readonly projectId: string;
  readonly bytes: number;
}

/** Longer than any node keeps a snapshot that no record names. */
const NOTED_MS = 400 * 86_400_000;
/** Variables in one statement: fewer than the smallest limit of both databases. */
const CHUNK = 500;

export type BlobRefStore = ReturnType<typeof blobRefStore>;

export function blobRefStore(db: Database, now: () => number) {
  return {
    /**
     * Records what a node has uploaded; nothing where no record names it. `late`: the reference was dropped before, or
     * its blobs may have been collected as garbage.
     */
    async record(
      reported: readonly Omit<BlobRef, "projectId">[],
    ): Promise<{ readonly recorded: ReadonlySet<string>; readonly late: ReadonlySet<string> }> {
      const recorded = new Set<string>();
      const late = new Set<string>();
      for (let at = 0; at < reported.length; at += CHUNK) {
        const some = reported.slice(at, at + CHUNK);
        await inTransaction(db, async (session) => {
          const owners = await ownersOf(
            session,
            some.map(({ id }) => id),
          );
          for (const { id, ref, bytes } of some) {
            const projectId = owners.get(id);
            if (projectId === undefined) continue;
            const stored = { id, ref, bytes, projectId };
            if (await keep(session, stored, now())) recorded.add(id);
            else late.add(id);
          }
        });
      }
      return { recorded, late };
    },

    /** Its reference; undefined: it is on its node only. */
    of: (id: string): Promise<BlobRef | undefined> => live(db, id),

    /** Which of these are in the blob store. */
    async among(ids: readonly string[]): Promise<ReadonlySet<string>> {
      if (ids.length === 0) return new Set();
      const rows = await db
        .selectFrom("blob_refs")
        .select("snapshot_id")
        .where("snapshot_id", "in", ids)
        .where("dropped_at", "is", null)
        .execute();
      return new Set(rows.map(({ snapshot_id: id }) => id));
    },

    /** The projects of these builds of templates, by build; none of those that no project owns. */
    owners: (buildIds: readonly string[]): Promise<ReadonlyMap<string, string>> => ownersOf(db, buildIds),

    /** True: the caller collects the garbage of this day, and no other orchestrator does. */
    async claimDay(day: number): Promise<boolean> {
      await db.deleteFrom("blob_sweeps").where("day", "<", day).execute();
      const { numInsertedOrUpdatedRows = 0n } = await db
        .insertInto("blob_sweeps")
        .values({ day, claimed_at: now() })
        .onConflict((conflict) => conflict.column("day").doNothing())
        .executeTakeFirstOrThrow();
      return numInsertedOrUpdatedRows > 0n;
    },

    /** The day's collection did not begin. */
    async releaseDay(day: number): Promise<void> {
      await db.deleteFrom("blob_sweeps").where("day", "=", day).execute();
    },

    /** Drops the references of what no record names, and resolves to all others, as they are at one instant. */
    async sweep(): Promise<BlobRef[]> {
      return inTransaction(db, async (session) => {
        const rows = await session.selectFrom("blob_refs").selectAll().where("dropped_at", "is", null).execute();
        const kept: BlobRef[] = [];
        for (let at = 0; at < rows.length; at += CHUNK) {
          const some = rows.slice(at, at + CHUNK);
          const ids = some.map(({ snapshot_id: id }) => id);
          const owners = await ownersOf(session, ids);
          kept.push(...some.filter(({ snapshot_id: id }) => owners.has(id)).map(toRef));
          const unnamed = ids.filter((id) => !owners.has(id));
          if (unnamed.length === 0) continue;
          await session
            .updateTable("blob_refs")
            .set({ dropped_at: now() })
            .where("snapshot_id", "in", unnamed)
            .execute();
        }
        await session
          .deleteFrom("blob_refs")
          .where("dropped_at", "<", now() - NOTED_MS)
          .execute();
        return kept;
      });
    },
  };
}

/** False: the reference is not recorded, and cannot be any more. */
async function keep(session: Session, { id, ref, projectId, bytes }: BlobRef, at: number): Promise<boolean> {
  const known = await session
    .selectFrom("blob_refs")
    .select("dropped_at")
    .where("snapshot_id", "=", id)
    .where("ref", "=", ref)
    .executeTakeFirst();
  if (known !== undefined) return known.dropped_at === null;
  if (!isRecordable(ref, at)) return false;
  const row = { snapshot_id: id, ref, project_id: projectId, bytes, stored_at: at, dropped_at: null };
  await session
    .insertInto("blob_refs")
    .values(row)
    // Another orchestrator may have heard the same report.
    .onConflict((conflict) => conflict.columns(["snapshot_id", "ref"]).doNothing())
    .execute();
  return true;
}

async function live(session: Session, id: string): Promise<BlobRef | undefined> {
  const row = await session
    .selectFrom("blob_refs")
    .selectAll()
    .where("snapshot_id", "=", id)
    .where("dropped_at", "is", null)
    .orderBy("stored_at", "desc")
    .executeTakeFirst();
  return row === undefined ? undefined : toRef(row);
}

/**
 * The projects of what a record names: of the snapshots of paused sandboxes, also while they start, of named snapshots, and of the images
 * and memories of templates.
 */
async function ownersOf(session: Session, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const paused = await session
    .selectFrom("sandboxes")
    .select(["snapshot_id as id", "project_id"])
    .where("state", "not in", ["gone", "killing"])
    .where("snapshot_id", "in", ids)
    .execute();
  const named = await session
    .selectFrom("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .select(["builds.id", "templates.project_id"])
    .where((build) => build.or([build("builds.kind", "=", "snapshot"), ready(build)]))
    .where("builds.id", "in", ids)
    .execute();
  const memories = await session
    .selectFrom("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .select(["builds.snapshot_id as id", "templates.project_id"])
    .where(ready)
    .where("builds.snapshot_id", "in", ids)
    .execute();
  return new Map(
    [...paused, ...named, ...memories].flatMap(({ id, project_id: projectId }) =>
      id === null || projectId === null ? [] : [[id, projectId] as const],
    ),
  );
}

/** A build of a template that sandboxes start from. */
const ready = (build: ExpressionBuilder<Tables, "builds">) =>
  build.and([build("builds.kind", "=", "template"), build("builds.status", "=", "ready")]);

function toRef({ snapshot_id: id, ref, project_id: projectId, bytes }: BlobRefRow): BlobRef {
  return { id, ref, projectId, bytes };
}
