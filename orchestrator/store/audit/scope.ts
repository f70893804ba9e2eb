/**
 * The entry that the request under way owes to the audit log: its first transaction that changes something writes it
 * (dialect.ts). No transaction outside a scope writes one by itself.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { NewEntry } from "./append.ts";

export interface AuditScope {
  /** False once the entry is written, or the request has ended. */
  readonly owes: boolean;
  /** False once the request has ended. */
  readonly underWay: boolean;
  /** The table whose first new row is the object of the action. */
  readonly table: string | undefined;
  /** Fills what the request did not name; what it named stays. */
  learn(facts: { readonly objectId?: string; readonly projectId?: string }): void;
  entry(): NewEntry;
  /** The entry is in the log for good. */
  wrote(seq: number): void;
  /** For one of several equal parts of the request, which has entries of its own. */
  part(): AuditPart;
}

export interface AuditPart extends AuditScope {
  /** Writes the part's end. @param error absent: it is done */
  end(error?: unknown): void;
}

const scopes = new AsyncLocalStorage<AuditScope | undefined>();

export function runAudited<T>(scope: AuditScope, work: () => Promise<T>): Promise<T> {
  return scopes.run(scope, work);
}

/** Runs one of several equal parts of the request under way: the audit log tells of it as of a request of its own. */
export async function runPart<T>(work: () => Promise<T>): Promise<T> {
  const part = scopes.getStore()?.part();
  if (part === undefined) return work();
  try {
    const result = await scopes.run(part, work);
    part.end();
    return result;
  } catch (error) {
    part.end(error);
    throw error;
  }
}

/** Runs work that is no change of the request under way, though that request started it. */
export function runUnaudited<T>(work: () => Promise<T>): Promise<T> {
  return scopes.run(undefined, work);
}

/** Undefined: work without a request, a request that changes nothing, or one that has written its entry. */
export function owingScope(): AuditScope | undefined {
  const scope = scopes.getStore();
  return scope?.owes === true ? scope : undefined;
}

/** Whether the work belongs to a request that is under way and records itself. */
export function recordsItself(): boolean {
  return scopes.getStore()?.underWay === true;
}

/** Names the row that a request is about to add or delete, where neither its path nor the statement shows it. */
export function concernsRow(table: string, objectId: string): void {
  const scope = owingScope();
  if (scope?.table === table) scope.learn({ objectId });
}

/** Names the project that a request of an operator is about. */
export function concernsProject(projectId: string): void {
  owingScope()?.learn({ projectId });
}
