/**
 * Ten thousand sandboxes in the list, and a thousand changes a second, over an orchestrator of its own with a simulated node.
 * Needs no test runner: a test and the bench of the console measure the same.
 */

import { randomUUID } from "node:crypto";
import { newExecutionId, newSandboxId } from "../../../shared/ids.ts";
import { type Cluster, startCluster } from "../cluster/cluster.ts";

export const COUNT = 10_000;
/** Rows of one statement: SQLite takes 32 766 values at most. */
const AT_ONCE = 250;
const DAY_MS = 86_400_000;
/** A hundred changes each time make a thousand a second. */
const STORM_EVERY_MS = 100;
const CHANGES = 100;

export interface TenThousand {
  readonly cluster: Cluster;
  /** The newest one, which the simulated node runs. */
  readonly first: string;
  /** The others, the newest first: copies in the database alone. */
  readonly ids: readonly string[];
}

export async function startTenThousand(): Promise<TenThousand> {
  // The simulated node reports none of the copies.
  const config = { reconcileEveryMs: DAY_MS, expiryEveryMs: DAY_MS, missingGraceMs: DAY_MS };
  const cluster = await startCluster({ onSqlite: true, config });
  const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } });
  const { sandboxID: first } = made.body as { sandboxID: string };
  const ids = await copies(cluster, "sandboxes", COUNT - 1, (row, index) => ({
    ...row,
    id: newSandboxId(),
    execution_id: newExecutionId(),
    started_at: Number(row["started_at"]) - 1000 * (index + 1),
    end_at: Number(row["end_at"]) + DAY_MS,
  }));
  return { cluster, first, ids };
}

/** The address of a page of it, of somebody whom a one-time link logs in. */
export async function linkTo({ cluster }: TenThousand): Promise<string> {
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  return cluster.url + path;
}

/** Changes sandboxes until it is ended, which resolves with how many changes a second there were. */
export function beginStorm({ cluster, first, ids }: TenThousand): () => Promise<number> {
  const begun = performance.now();
  const changes: Promise<void>[] = [];
  const storm = setInterval(() => {
    const one = change(cluster, first, ids);
    // The end of the storm has its failure.
    one.catch(() => undefined);
    changes.push(one);
  }, STORM_EVERY_MS);
  return async () => {
    clearInterval(storm);
    await Promise.all(changes);
    return (changes.length * CHANGES * 1000) / (performance.now() - begun);
  };
}

/** Scrolls through the list in three seconds. */
export const SCROLL = `new Promise((resolve) => {
  const list = document.querySelector(".rows");
  const most = list.scrollHeight - list.clientHeight;
  const begun = performance.now();
  const frame = (now) => {
    const part = Math.min(1, (now - begun) / 3000);
    list.scrollTop = part * most;
    if (part < 1) requestAnimationFrame(frame);
    else resolve();
  };
  requestAnimationFrame(frame);
})`;

/** A hundred changes, of which the last one is the platform's own and makes it look. */
async function change(cluster: Cluster, id: string, of: readonly string[]): Promise<void> {
  const count = CHANGES - 1;
  const [order] = await cluster.database.query(`update event_order set last = last + ${count} returning last`);
  const last = Number(order?.["last"]);
  await copies(cluster, "events", count, (row, index) => ({
    ...row,
    id: randomUUID(),
    sequence: last - index,
    sandbox_id: of[(last - index) % of.length],
  }));
  await cluster.ask("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 3600 } });
}

type Row = Record<string, unknown>;

/** Stores copies of a row of the table. Resolves with their ids. */
async function copies(
  { database }: Cluster,
  table: "sandboxes" | "events",
  count: number,
  copy: (row: Row, index: number) => Row,
): Promise<string[]> {
  const [like] = await database.query(`select * from ${table} limit 1`);
  const made = Array.from({ length: count }, (_none, index) => copy(like ?? {}, index));
  const columns = Object.keys(made[0] ?? {});
  const values = `(${columns.map(() => "?").join(", ")})`;
  for (let from = 0; from < count; from += AT_ONCE) {
    const rows = made.slice(from, from + AT_ONCE);
    await database.query(
      `insert into ${table} (${columns.join(", ")}) values ${rows.map(() => values).join(", ")}`,
      ...rows.flatMap((row) => columns.map((name) => row[name])),
    );
  }
  return made.map(({ id }) => String(id));
}
