/** SQL on the uses of secrets: which execution got which version, and how often its requests used it. */

import type { Transaction } from "kysely";
import { sql } from "kysely";
import type { Database, Session, Tables } from "../tables.ts";
import { inTransaction } from "../transactions.ts";

/** A version of a secret that a node fetches for an execution. */
export interface SecretUse {
  readonly secretId: string;
  readonly name: string;
  readonly version: number;
  readonly projectId: string;
  readonly sandboxId: string;
  readonly executionId: string;
  readonly nodeId: string;
}

/** Runs in the transaction that notes the first use of a version by an execution. */
export type OnFirstUse = (session: Transaction<Tables>, use: SecretUse) => Promise<void>;

/** Uses of one secret by one execution since the node's last report. */
interface CountedUses {
  readonly executionId: string;
  readonly name: string;
  readonly count: number;
  readonly lastAt: number;
}

/** A node repeats a report for as long as it gets no answer. */
const REPORT_KEPT_MS = 7 * 86_400_000;

export function secretUseStore(db: Database, now: () => number) {
  return {
    /**
     * Notes the first use of a version by an execution, and calls `first` in the same transaction; a later use changes
     * nothing. False: the secret has been deleted, or the execution has ended.
     */
    async note(use: SecretUse, first: OnFirstUse): Promise<boolean> {
      const { secretId, executionId, version } = use;
      const known = await db
        .selectFrom("secret_uses")
        .select("version")
        .where("execution_id", "=", executionId)
        .where("secret_id", "=", secretId)
        .executeTakeFirst();
      if (known !== undefined && known.version >= version) return true;
      return inTransaction(db, async (session) => {
        if (!(await bothExist(session, use))) return false;
        const noted = await session
          .insertInto("secret_uses")
          .values({
            secret_id: secretId,
            execution_id: executionId,
            sandbox_id: use.sandboxId,
            project_id: use.projectId,
            node_id: use.nodeId,
            version,
            first_at: now(),
            use_count: 0,
            last_at: null,
          })
          .onConflict((conflict) =>
            conflict
              .columns(["execution_id", "secret_id"])
              .doUpdateSet({ version })
              .where("secret_uses.version", "<", version),
          )
          .returning("secret_id")
          .executeTakeFirst();
        if (noted !== undefined) await first(session, use);
        return true;
      });
    },

    /** Counts the uses that a node reports. A repeated report, and uses of what the node has not fetched, count nothing. */
    async report(
      report: { readonly id: string; readonly nodeId: string },
      uses: readonly CountedUses[],
    ): Promise<void> {
      await inTransaction(db, async (session) => {
        const at = now();
        await session
          .deleteFrom("use_reports")
          .where("reported_at", "<", at - REPORT_KEPT_MS)
          .execute();
        const fresh = await session
          .insertInto("use_reports")
          .values({ id: report.id, reported_at: at })
          .onConflict((conflict) => conflict.column("id").doNothing())
          .returning("id")
          .executeTakeFirst();
        if (fresh === undefined) return;
        for (const use of uses) await count(session, report.nodeId, { ...use, lastAt: Math.min(use.lastAt, at) });
      });
    },
  };
}

async function bothExist(session: Session, { secretId, sandboxId, executionId }: SecretUse): Promise<boolean> {
  const secret = await session.selectFrom("secrets").select("id").where("id", "=", secretId).executeTakeFirst();
  const sandbox = await session
    .selectFrom("sandboxes")
    .select("id")
    .where("id", "=", sandboxId)
    .where("execution_id", "=", executionId)
    .executeTakeFirst();
  return secret !== undefined && sandbox !== undefined;
}

async function count(session: Session, nodeId: string, { executionId, name, ...use }: CountedUses): Promise<void> {
  const counted = await session
    .updateTable("secret_uses")
    .set((update) => ({
      use_count: update("use_count", "+", use.count),
      last_at: later("last_at", use.lastAt),
    }))
    .where("execution_id", "=", executionId)
    .where("node_id", "=", nodeId)
    .where("secret_id", "in", (from) =>
      from
        .selectFrom("secrets")
        .select("secrets.id")
        .where("secrets.name", "=", name)
        .whereRef("secrets.project_id", "=", "secret_uses.project_id"),
    )
    .returning("secret_id")
    .executeTakeFirst();
  if (counted === undefined) return;
  await session
    .updateTable("secrets")
    .set((update) => ({
      use_count: update("use_count", "+", use.count),
      last_used_at: later("last_used_at", use.lastAt),
    }))
    .where("id", "=", counted.secret_id)
    .execute();
}

/** The later of the column's time and `at`. */
function later(column: "last_at" | "last_used_at", at: number) {
  const time = sql.ref(column);
  return sql<number>`case when ${time} >= ${at} then ${time} else ${at} end`;
}
