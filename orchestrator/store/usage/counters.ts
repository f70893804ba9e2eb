/**
 * What executions have counted. Every orchestrator adds what it heard to the rows, and takes from them what has grown: a node
 * may report to one of them and then to another one, and nothing is counted twice.
 */

import type { Selectable } from "kysely";
import { LIVE } from "../projects/use.ts";
import type { Database, Session } from "../tables.ts";
import { compiledForRows, inBatches } from "./batches.ts";
import type { UsageTables } from "./row.ts";
import { type Counters, plus, since, type Used } from "./sample.ts";

/** What an orchestrator has heard of an execution since it told the database last. */
export interface Heard {
  readonly projectId: string;
  readonly counted: Counters;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Time of the newest report, unix milliseconds. */
  readonly at: number;
  /** What was counted since the report that this orchestrator told the database of last. */
  readonly grown: Counters;
  /** Time of that report. Absent: there was none, and `grown` is all that was counted. */
  readonly since?: number;
}

/** An execution that no report has mentioned for so long may have ended; until half of it, it counts as in use. */
const SILENT_MS = 60_000;
/** A row that is so much newer than a report is from a clock that was ahead. */
const AHEAD_MS = 3_600_000;

type CounterRow = Selectable<UsageTables["usage_counters"]>;

export function usageCounters(db: Database) {
  const insertion = compiledForRows((count) => counterInsertion(db, count));
  const selection = compiledForRows((count) =>
    db
      .selectFrom("usage_counters")
      .selectAll()
      .where(
        "execution_id",
        "in",
        Array.from({ length: count }, () => ""),
      )
      .compile(),
  );

  /** @param now unix milliseconds */
  async function inUse(session: Session, now: number) {
    return session
      .selectFrom("usage_counters")
      .select((select) => [
        "project_id",
        select.fn.sum<number | string>("memory_bytes").as("memory"),
        select.fn.sum<number | string>("disk_bytes").as("disk"),
      ])
      .where("heard_at", ">=", now - SILENT_MS / 2)
      .where("heard_at", "<=", now + AHEAD_MS)
      .groupBy("project_id")
      .execute();
  }

  return {
    /** What the executions have counted that is in no sample yet, and what they use, by project. Under the lock `usage`. */
    async count(session: Session, heard: ReadonlyMap<string, Heard>, now: number): Promise<Map<string, Used>> {
      const used = new Map<string, Used>();
      const change = (projectId: string, by: Partial<Used>) =>
        used.set(projectId, { ...(used.get(projectId) ?? NONE), ...by });
      await inBatches([...heard], async (batch) => {
        const ids = batch.map(([id]) => id);
        const { rows } = await session.executeQuery(selection(batch.length, ids));
        const known = new Map(rows.map((row) => [row.execution_id, row]));
        const newer: (string | number)[][] = [];
        for (const [id, each] of batch) {
          const grown = grownSince(known.get(id), each);
          if (grown === undefined) continue;
          change(each.projectId, plus(used.get(each.projectId) ?? NONE, grown));
          const { cpuMs, sentBytes, receivedBytes } = each.counted;
          const { projectId, memoryBytes, diskBytes, at } = each;
          newer.push([id, cpuMs, sentBytes, receivedBytes, projectId, memoryBytes, diskBytes, at]);
        }
        await inBatches(newer, (some) => session.executeQuery(insertion(some.length, some.flat())));
      });
      for (const { project_id: id, memory, disk } of await inUse(session, now))
        if (id !== null) change(id, { memoryBytes: Number(memory), diskBytes: Number(disk) });
      return used;
    },

    /** Forgets the executions that no report mentions and no sandbox runs. Others may be on a node that cannot be reached. */
    async forget(session: Session, now: number): Promise<void> {
      await session
        .deleteFrom("usage_counters")
        .where((where) =>
          where.or([
            where("heard_at", "is", null),
            where("heard_at", "<", now - SILENT_MS),
            where("heard_at", ">", now + AHEAD_MS),
          ]),
        )
        .where((where) =>
          where.not(
            where.exists(
              where
                .selectFrom("sandboxes")
                .select("sandboxes.id")
                .whereRef("sandboxes.execution_id", "=", "usage_counters.execution_id")
                .where("sandboxes.state", "in", LIVE),
            ),
          ),
        )
        .execute();
    },
  };
}

const NONE: Used = { cpuMs: 0, sentBytes: 0, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 };

/** Undefined: another orchestrator has told the database of a newer report, which includes this one. */
function grownSince(row: CounterRow | undefined, heard: Heard): Counters | undefined {
  if (row === undefined) return heard.grown;
  const told = row.heard_at ?? 0;
  if (heard.since !== undefined && told <= heard.since) return heard.grown;
  if (told >= heard.at && told <= heard.at + AHEAD_MS) return undefined;
  return since({ cpuMs: row.cpu_ms, sentBytes: row.sent_bytes, receivedBytes: row.received_bytes }, heard.counted);
}

function counterInsertion(db: Database, count: number) {
  const example = {
    execution_id: "",
    cpu_ms: 0,
    sent_bytes: 0,
    received_bytes: 0,
    project_id: "",
    memory_bytes: 0,
    disk_bytes: 0,
    heard_at: 0,
  };
  return db
    .insertInto("usage_counters")
    .values(Array.from({ length: count }, () => example))
    .onConflict((conflict) =>
      conflict.column("execution_id").doUpdateSet((row) => ({
        cpu_ms: row.ref("excluded.cpu_ms"),
        sent_bytes: row.ref("excluded.sent_bytes"),
        received_bytes: row.ref("excluded.received_bytes"),
        project_id: row.ref("excluded.project_id"),
        memory_bytes: row.ref("excluded.memory_bytes"),
        disk_bytes: row.ref("excluded.disk_bytes"),
        heard_at: row.ref("excluded.heard_at"),
      })),
    )
    .compile();
}
