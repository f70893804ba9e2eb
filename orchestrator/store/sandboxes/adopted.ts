/**
 * SQL that gives a sandbox the state that its node reports, whatever the store knew of it: the operator has decided that
 * the node is right. The one exception to the table of moves, beside the inserts of new sandboxes.
 */

import type { KeyedSeal } from "../../../shared/program/sealing/seal.ts";
import type { Changes } from "../changes/changes.ts";
import { lock, locks } from "../locks.ts";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import type { MoveSet, NewSandbox, SandboxRecord, SandboxRow, SandboxTable } from "./record.ts";

/** What the node says. */
export type AdoptedState =
  | {
      readonly is: "running";
      readonly executionId: string;
      readonly address: string;
      readonly startedAt: number;
      readonly endAt: number;
    }
  | {
      readonly is: "paused";
      readonly executionId: string;
      readonly at: number;
      readonly snapshot: {
        readonly id: string;
        readonly memory: boolean;
        readonly memoryBytes: number;
        readonly diskBytes: number;
      };
    };

export interface Adopted {
  readonly id: string;
  readonly nodeId: string;
  /** The project for a sandbox without a record, or whose record names a project that this store does not have. */
  readonly projectId: string;
  readonly state: AdoptedState;
  /** The row that its node kept; undefined: it has none, and `fallback` stands for what is lost. */
  readonly row: string | undefined;
  readonly fallback: Omit<NewSandbox, "sealedEnvs" | "deadlineAt">;
}

interface AdoptedDeps {
  readonly table: SandboxTable;
  readonly sealing: KeyedSeal;
  readonly now: () => number;
  readonly changes: Changes;
}

export function adoptedStore(db: Database, { table, sealing, now, changes }: AdoptedDeps) {
  const { toRecord, toRow, toColumns } = table;

  /** The kept row where it is readable, without columns that this version does not have. */
  function rowOf({ row, fallback, projectId }: Adopted, projects: ReadonlySet<string>): SandboxRow {
    const base = toRow({ ...fallback, sealedEnvs: sealing.close("{}", fallback.id), deadlineAt: 0 });
    const kept = row === undefined ? {} : (JSON.parse(row) as Record<string, string | number | null>);
    const known = Object.fromEntries(Object.entries(kept).filter(([name]) => Object.hasOwn(base, name)));
    const whole = { ...base, ...known, id: fallback.id };
    const owner = whole.project_id;
    return { ...whole, project_id: projects.has(owner) ? owner : projectId };
  }

  return {
    /** `imported`: the store had no record. `corrected`: it had another state. `same`: nothing was to be done. */
    async adopt(
      adopted: Adopted,
    ): Promise<{ readonly how: "imported" | "corrected" | "same"; readonly record: SandboxRecord }> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.sandbox(adopted.id));
        const change = changeOf(adopted, now());
        const set = toColumns(change);
        const found = await session.selectFrom("sandboxes").selectAll().where("id", "=", adopted.id).executeTakeFirst();
        if (found !== undefined && isAs(toRecord(found), change)) return { how: "same", record: toRecord(found) };
        await changes.note(session, "sandbox", adopted.id);
        if (found !== undefined) {
          const row = await session
            .updateTable("sandboxes")
            .set(set)
            .where("id", "=", adopted.id)
            .returningAll()
            .executeTakeFirstOrThrow();
          return { how: "corrected", record: toRecord(row) };
        }
        const projects = await session.selectFrom("projects").select("id").execute();
        const whole = { ...rowOf(adopted, new Set(projects.map(({ id }) => id))), ...set };
        await session.insertInto("sandboxes").values(whole).execute();
        const metadata = Object.entries(JSON.parse(whole.metadata) as Record<string, string>);
        if (metadata.length > 0) {
          const rows = metadata.map(([name, value]) => ({ sandbox_id: adopted.id, name, value }));
          await session.insertInto("sandbox_metadata").values(rows).execute();
        }
        return { how: "imported", record: toRecord(whole) };
      });
    },

    /** The row of a new sandbox, for its node to keep. */
    describe: (sandbox: NewSandbox): string => JSON.stringify(toRow(sandbox)),
  };
}

function changeOf({ nodeId, state }: Adopted, at: number): MoveSet {
  const common = {
    nodeId,
    executionId: state.executionId,
    deadlineAt: 0,
    endedAt: null,
    end: null,
    pendingSnapshot: null,
    resumption: null,
    rewind: null,
  };
  if (state.is === "paused") {
    const { id, memory, memoryBytes, diskBytes } = state.snapshot;
    const snapshot = { id, memory, size: { memoryBytes, diskBytes } };
    return { ...common, state: "paused", endAt: Math.min(at, state.at), snapshot };
  }
  const { address, startedAt, endAt } = state;
  return { ...common, state: "running", address, startedAt, endAt, snapshot: null };
}

/** Times of the node and of the record differ a little. */
function isAs(found: SandboxRecord, change: MoveSet): boolean {
  return (
    found.state === change.state &&
    found.executionId === change.executionId &&
    found.nodeId === change.nodeId &&
    (change.state === "running" || found.snapshot?.id === change.snapshot?.id)
  );
}
