/** The logs of builds. The only SQL on them. */

import type { BuildLogEntry } from "../../shared/build-shapes.ts";
import type { Database, Session } from "./tables.ts";

type Level = BuildLogEntry["level"];

/** From the least to the most urgent. */
const LEVELS: readonly Level[] = ["debug", "info", "warn", "error"];

/** A build that says more is cut off, and says so. */
const MAX_ENTRIES = 20_000;
const MAX_MESSAGE = 16_384;
/** Rows of one statement. */
const CHUNK = 100;

export function buildLogStore(db: Database) {
  return {
    /** Entries [offset, offset + limit) of those with that level or a more urgent one, oldest first. */
    async from(buildId: string, offset: number, limit: number, level?: Level): Promise<BuildLogEntry[]> {
      const rows = await atLeast(db, buildId, level).orderBy("position").limit(limit).offset(offset).execute();
      return rows.map(toEntry);
    },

    /** Forward: from `cursor` on, oldest first; backward: up to it, newest first. Unix milliseconds, inclusive. */
    async around(
      buildId: string,
      range: {
        readonly cursor?: number;
        readonly direction: "forward" | "backward";
        readonly limit: number;
        readonly level?: Level;
      },
    ): Promise<BuildLogEntry[]> {
      const forward = range.direction === "forward";
      let query = atLeast(db, buildId, range.level);
      if (range.cursor !== undefined) query = query.where("at", forward ? ">=" : "<=", range.cursor);
      const rows = await query
        .orderBy("position", forward ? "asc" : "desc")
        .limit(range.limit)
        .execute();
      return rows.map(toEntry);
    },
  };
}

function atLeast(db: Database, buildId: string, level: Level | undefined) {
  const query = db.selectFrom("build_logs").selectAll().where("build_id", "=", buildId);
  return level === undefined ? query : query.where("level", "in", LEVELS.slice(LEVELS.indexOf(level)));
}

/** After the last; what does not fit any more is dropped, with one entry that says so. */
export async function append(session: Session, buildId: string, entries: readonly BuildLogEntry[]): Promise<void> {
  const { next } = await session
    .selectFrom("build_logs")
    .select((select) => select.fn.count<number>("position").as("next"))
    .where("build_id", "=", buildId)
    .executeTakeFirstOrThrow();
  const rows = entries.slice(0, Math.max(0, MAX_ENTRIES - next)).map((entry, index) => ({
    build_id: buildId,
    position: next + index,
    at: entry.at,
    level: entry.level,
    message: entry.message.length > MAX_MESSAGE ? `${entry.message.slice(0, MAX_MESSAGE)}…` : entry.message,
    step: entry.step ?? null,
  }));
  const last = rows.at(-1);
  if (last?.position === MAX_ENTRIES - 1) {
    rows.splice(-1, 1, { ...last, level: "warn", message: "the log is too long: what follows is not kept" });
  }
  for (let at = 0; at < rows.length; at += CHUNK) {
    await session
      .insertInto("build_logs")
      .values(rows.slice(at, at + CHUNK))
      .execute();
  }
}

function toEntry(row: { at: number; level: Level; message: string; step: string | null }): BuildLogEntry {
  const { at, level, message, step } = row;
  return { at, level, message, ...(step === null ? {} : { step }) };
}
