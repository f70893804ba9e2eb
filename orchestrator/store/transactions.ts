/**
 * Transactions that several processes may run at the same time: one that the server has rolled back runs again, and what
 * follows from a transaction happens after its commit. So the work of a transaction has no effect but its statements.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Transaction } from "kysely";
import type { Database, Session, Tables } from "./tables.ts";

/** PostgreSQL's serialization failure and deadlock: it has rolled the transaction back, and the same may succeed now. */
const ROLLED_BACK: ReadonlySet<string> = new Set(["40001", "40P01"]);
const MOST_TRIES = 10;
/** Grows with each try; a random part of it, so that two transactions that failed together do not meet again. */
const WAIT_MS = 10;

const following = new WeakMap<Session, (() => void)[]>();

/** @param work runs again when the server has rolled it back, and never when it is unknown whether it was committed */
export async function inTransaction<T>(db: Database, work: (session: Transaction<Tables>) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const follows: (() => void)[] = [];
    try {
      const result = await db.transaction().execute((session) => {
        following.set(session, follows);
        return work(session);
      });
      for (const follow of follows) follow();
      return result;
    } catch (error) {
      if (tries === MOST_TRIES || !wasRolledBack(error)) throw error;
      await sleep(Math.random() * WAIT_MS * tries);
    }
  }
}

/** Calls `follow` when the transaction has been committed; not at all when it is rolled back. */
export function afterCommit(session: Session, follow: () => void): void {
  const follows = following.get(session);
  if (follows === undefined) throw new Error("afterCommit needs the session of inTransaction");
  follows.push(follow);
}

/** Whether the server says so; an error of the connection leaves open what became of a commit. */
function wasRolledBack(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && ROLLED_BACK.has(String(reason.code));
}
