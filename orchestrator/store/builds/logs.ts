/** The logs of builds. The only SQL on them. */

import type { Insertable } from "kysely";
import type { BuildLogEntry } from "../../../shared/agent-api/build-shapes.ts";
import { defined } from "../../../shared/defined.ts";
import type { BuildLogRow, Database, Session } from "../tables.ts";

type BuildLogLevel = BuildLogEntry["level"];

/** From the least to the most urgent. */
const LEVELS: readonly BuildLogLevel[] = ["debug", "info", "warn", "error"];

/** Size at which a build's log ends, with an entry about the limit. */
const MAX_ENTRIES = 20_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;
const MAX_MESSAGE = 16_384;
const TOO_LONG = "the log is too long: what follows is not kept";
/** Rows of one statement. */
const CHUNK = 100;

export function buildLogStore(db: Database) {
  return {
    /** Entries [offset, offset + limit) of those with that level or a more urgent one, oldest first. */
    async from(buildId: string, offset: number, limit: number, level?: BuildLogLevel): Promise<BuildLogEntry[]> {
      const all = atLeast(db, buildId, level).orderBy("position").limit(limit);
      // Without a level the position is the offset.
      const rows = await (level === undefined ? all.where("position", ">=", offset) : all.offset(offset)).execute();
      return rows.map(toEntry);
    },

    /** Forward: from `cursor` on, oldest first; backward: up to it, newest first. Unix milliseconds, inclusive. */
    async around(
      buildId: string,
      range: {
        readonly cursor?: number;
        readonly direction: "forward" | "backward";
        readonly limit: number;
        readonly level?: BuildLogLevel;
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

function atLeast(db: Database, buildId: string, level: BuildLogLevel | undefined) {
  const query = db.selectFrom("build_logs").selectAll().where("build_id", "=", buildId);
  return level === undefined ? query : query.where("level", "in", LEVELS.slice(LEVELS.indexOf(level)));
}

/** Appends entries. Drops entries beyond the limit, and writes one entry about that. */
export async function append(session: Session, buildId: string, entries: readonly BuildLogEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const { characters } = await session
    .selectFrom("builds")
    .select("log_characters as characters")
    .where("id", "=", buildId)
    .executeTakeFirstOrThrow();
  if (characters >= MAX_CHARACTERS) return;
  const { last } = await session
    .selectFrom("build_logs")
    .select((select) => select.fn.max("position").as("last"))
    .where("build_id", "=", buildId)
    .executeTakeFirstOrThrow();
  const { rows, sum } = fitting(entries, { buildId, next: last === null ? 0 : last + 1, characters });
  for (let at = 0; at < rows.length; at += CHUNK) {
    await session
      .insertInto("build_logs")
      .values(rows.slice(at, at + CHUNK))
      .execute();
  }
  await session.updateTable("builds").set({ log_characters: sum }).where("id", "=", buildId).execute();
}

/** `sum` is the limit once the log is full. */
function fitting(
  entries: readonly BuildLogEntry[],
  log: { readonly buildId: string; readonly next: number; readonly characters: number },
) {
  let sum = log.characters;
  const rows: Insertable<BuildLogRow>[] = [];
  for (const { at, level, message, step } of entries) {
    const position = log.next + rows.length;
    const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
    sum += text.length;
    const full = position >= MAX_ENTRIES - 1 || sum >= MAX_CHARACTERS;
    rows.push({
      build_id: log.buildId,
      position,
      at,
      level: full ? ("warn" as const) : level,
      message: full ? TOO_LONG : text,
      step: full ? null : (step ?? null),
    });
    if (full) return { rows, sum: MAX_CHARACTERS };
  }
  return { rows, sum };
}

function toEntry(row: { at: number; level: BuildLogLevel; message: string; step: string | null }): BuildLogEntry {
  const { at, level, message, step } = row;
  return { at, level, message, ...defined({ step: step ?? undefined }) };
}
