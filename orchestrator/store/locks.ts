/**
 * Named locks that end with their transaction. A decision that reads rows which it does not write (a count, the last
 * entry, "none there") takes one first: between its read and its commit no other process decides the same. On SQLite, whose
 * transactions run one after another, there is nothing to lock.
 *
 * Transactions take them in the order of this list, then rows, then the counter of events; the audit log's comes last.
 */

import { type CompiledQuery, PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Database, Session } from "./tables.ts";

/** What a lock stands for. */
export const locks = {
  /** The workspaces, and which projects are in them. */
  workspaces: "workspaces",
  /** Limits and quotas of a project: what counts against them, and its deletion. */
  project: (id: string) => `project ${id}`,
  /** Names of templates in a namespace; '' has the promoted ones. */
  names: (namespace: string) => `names ${namespace}`,
  /** The builds of a template: whether it has any, and which one supersedes which. */
  template: (id: string) => `template ${id}`,
  /** Whether a sandbox has a record. */
  sandbox: (id: string) => `sandbox ${id}`,
  /** The keys of workload identity. */
  identity: "identity",
  /** What is noted of nodes by whoever sees it first. */
  nodeEvents: "node events",
  /** Samples of use, with their marks. */
  usage: "usage",
  /** The end of the audit log's chain, and its beginning. */
  audit: "audit",
} as const;

/** Sets the keys of these locks apart from those that others take in the same database. */
const SEED = 7_382_002;

export function isPostgres(db: Session): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Waits for the lock; it ends with the transaction. */
export async function lock(session: Session, name: string): Promise<void> {
  if (isPostgres(session)) await locking(name).execute(session);
}

/** As `lock`, for several: in one order, so that no two transactions wait for each other. */
export async function lockAll(session: Session, names: Iterable<string>): Promise<void> {
  for (const name of [...new Set(names)].sort()) await lock(session, name);
}

/** As `lock`, compiled once. Undefined: this database needs none. */
export function compiledLock(builder: Database | Session, name: string): CompiledQuery | undefined {
  return isPostgres(builder) ? locking(name).compile(builder) : undefined;
}

function locking(name: string): RawBuilder<unknown> {
  return sql`select pg_advisory_xact_lock(hashtextextended(${name}, ${SEED}))`;
}
