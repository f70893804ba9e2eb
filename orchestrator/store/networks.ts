/**
 * SQL on changes of network options. A change is written beside the options before the node is asked, and replaces them
 * once the node has it. Every step checks the version, so of two concurrent changes one wins as a whole.
 */

import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import type { MovingOperations } from "./operations/operations.ts";
import { Overtaken } from "./operations/record.ts";
import type { NetworkColumns, SandboxRecord, SandboxTable } from "./sandboxes/record.ts";
import type { Database, Session } from "./tables.ts";
import { inTransaction } from "./transactions.ts";

const LIVE_OR_PAUSED: readonly SandboxState[] = ["running", "pausing", "paused", "snapshotting", "rewinding"];

interface NetworkStoreDeps {
  readonly table: SandboxTable;
  readonly operations: MovingOperations;
  /** Whether no other process works on the sandboxes: then each of these is one statement. */
  readonly alone: boolean;
}

export function networkStore(db: Database, { table, operations, alone }: NetworkStoreDeps) {
  const { toRecord, toColumns } = table;
  const together = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    alone ? work(db) : inTransaction(db, work);

  return {
    /**
     * The record with its next version. Undefined: the sandbox has moved on since `seen`.
     * @throws {UnderWay} another orchestrator works on the sandbox
     */
    async begin(
      seen: Pick<SandboxRecord, "id" | "executionId" | "networkVersion">,
      sealedChange: string,
    ): Promise<SandboxRecord | undefined> {
      return together(async (session) => {
        const row = await session
          .updateTable("sandboxes")
          .set({ network_version: seen.networkVersion + 1, network_change: sealedChange })
          .where("id", "=", seen.id)
          .where("execution_id", "=", seen.executionId)
          .where("network_version", "=", seen.networkVersion)
          .where("state", "=", "running")
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        await operations.begin(session, seen.id, "network");
        return toRecord(row);
      });
    },

    /**
     * Records that the node has the change. Undefined: a newer one began, it was dropped, or the execution ended.
     * @throws {Overtaken} another orchestrator has taken the change over
     */
    async commit(
      session: Session,
      { id, executionId, networkVersion }: Pick<SandboxRecord, "id" | "executionId" | "networkVersion">,
      columns: NetworkColumns,
    ): Promise<SandboxRecord | undefined> {
      const row = await session
        .updateTable("sandboxes")
        .set(
          toColumns(
            {
              network: columns.network ?? null,
              internet: columns.internet ?? null,
              sealedProxyPassword: columns.sealedProxyPassword ?? null,
              sealedNetworkChange: null,
            },
            id,
          ),
        )
        .where("id", "=", id)
        .where("execution_id", "=", executionId)
        .where("network_version", "=", networkVersion)
        .where("network_change", "is not", null)
        .where("state", "in", LIVE_OR_PAUSED)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      if (!(await operations.end(session, id))) throw new Overtaken();
      return toRecord(row);
    },

    /** Replaces the change under way, or clears it (null). False: it is no longer under way. */
    async replaceChange(
      { id, networkVersion }: Pick<SandboxRecord, "id" | "networkVersion">,
      sealedChange: string | null,
    ): Promise<boolean> {
      return together(async (session) => {
        const result = await session
          .updateTable("sandboxes")
          .set({ network_change: sealedChange })
          .where("id", "=", id)
          .where("network_version", "=", networkVersion)
          .where("network_change", "is not", null)
          .executeTakeFirst();
        const replaced = result.numUpdatedRows === 1n;
        if (replaced && sealedChange === null) await operations.end(session, id);
        return replaced;
      });
    },

    /** A sandbox and the change under way, sealed. */
    async changing(id: string): Promise<{ readonly record: SandboxRecord; readonly sealed: string } | undefined> {
      const row = await db
        .selectFrom("sandboxes")
        .selectAll()
        .where("id", "=", id)
        .where("network_change", "is not", null)
        .executeTakeFirst();
      const sealed = row?.network_change ?? undefined;
      return row === undefined || sealed === undefined ? undefined : { record: toRecord(row), sealed };
    },

    /** The sandbox whose execution this is, or will be when its rewind ends, with the sealed change under way, if any. */
    async ofExecution(
      executionId: string,
    ): Promise<{ readonly record: SandboxRecord; readonly sealed: string | undefined } | undefined> {
      const row = await db
        .selectFrom("sandboxes")
        .selectAll()
        .where((where) =>
          where.or([where("execution_id", "=", executionId), where("rewind_execution_id", "=", executionId)]),
        )
        .executeTakeFirst();
      return row === undefined ? undefined : { record: toRecord(row), sealed: row.network_change ?? undefined };
    },

    /** Sandboxes that have not ended, with a change under way. */
    async unsettled(limit: number): Promise<{ readonly id: string; readonly nodeId: string }[]> {
      const rows = await db
        .selectFrom("sandboxes")
        .select(["id", "node_id"])
        .where("network_change", "is not", null)
        .where("state", "!=", "gone")
        .limit(limit)
        .execute();
      return rows.map(({ id, node_id: nodeId }) => ({ id, nodeId }));
    },
  };
}
