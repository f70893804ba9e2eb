/** Fills a database with records of sandboxes: copies of one that is paused and one that has ended, under names of their own. */

import { randomUUID } from "node:crypto";
import { newExecutionId, newSandboxId } from "../../../shared/ids.ts";
import type { TestDatabase } from "../../support/store/databases.ts";
import type { SimulatedNodes } from "./simulated-nodes.ts";

/** Rows of one statement: PostgreSQL takes 65 535 values at most, SQLite 32 766. */
const ROWS = 400;

interface Filling {
  readonly database: Pick<TestDatabase, "query" | "place">;
  readonly nodes: SimulatedNodes;
  readonly paused: { readonly like: string; readonly count: number };
  readonly ended: { readonly like: string; readonly count: number };
}

/** Gives the nodes the snapshots of the paused ones first: a node that reports none of a record's would have lost it. */
export async function fillWithRecords({ database, nodes, paused, ended }: Filling): Promise<void> {
  await copies(database, paused, (row, index) => {
    const nodeId = nodes.ids[index % nodes.ids.length] ?? "";
    const [snapshotId, sandboxId, executionId] = [randomUUID(), newSandboxId(), newExecutionId()];
    const bytes = { memoryBytes: 1, diskBytes: 1 };
    nodes.keep(nodeId, {
      snapshotId,
      kind: "pause",
      sandboxId,
      executionId,
      memory: true,
      ...bytes,
      takenAt: Date.now(),
    });
    return { ...row, id: sandboxId, execution_id: executionId, node_id: nodeId, snapshot_id: snapshotId };
  });
  await copies(database, ended, (row) => ({ ...row, id: newSandboxId(), execution_id: newExecutionId() }));
  // What PostgreSQL does within a minute after so many changes, and does not do while they are made in one go.
  await database.query(database.place.startsWith("postgres") ? "vacuum (analyze) sandboxes" : "analyze");
}

type Row = Record<string, unknown>;

async function copies(
  database: Pick<TestDatabase, "query">,
  { like, count }: { readonly like: string; readonly count: number },
  copy: (row: Row, index: number) => Row,
): Promise<void> {
  const [row] = await database.query("select * from sandboxes where id = ?", like);
  if (row === undefined) throw new Error(`there is no record of sandbox ${like}`);
  const columns = Object.keys(row);
  const values = `(${columns.map(() => "?").join(", ")})`;
  for (let from = 0; from < count; from += ROWS) {
    const rows = Array.from({ length: Math.min(ROWS, count - from) }, (_, index) => {
      const started = Number(row["started_at"]) - from - index;
      return copy({ ...row, started_at: started }, from + index);
    });
    await database.query(
      `insert into sandboxes (${columns.join(", ")}) values ${rows.map(() => values).join(", ")}`,
      ...rows.flatMap((each) => columns.map((name) => each[name])),
    );
  }
}
