/**
 * Keeps the audit log: deletes the oldest entries after their time, and every hour logs the end of the chain, so that a
 * log that is cut or put back later does not fit what stands elsewhere.
 */

import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { AuditStore } from "../store/audit/audit.ts";
import type { Head } from "../store/audit/chain.ts";
import type { Leases } from "../store/membership/leases.ts";

export interface KeepingDeps {
  readonly store: Pick<AuditStore, "head" | "forget" | "hashAt">;
  readonly keepMs: number;
  readonly now: () => number;
  readonly log: Log;
  readonly everyMs: number;
  readonly noteLeftOut: () => void;
  readonly leases: Leases;
}

const HOUR_MS = 3_600_000;
/** Entries of one transaction, which blocks the others. */
const BATCH = 1000;
const BATCHES = 50;

export function startKeeping({ store, keepMs, now, log, everyMs, noteLeftOut, leases }: KeepingDeps): Loop {
  let dueAt = 0;
  let known: Head | undefined;

  /** An entry that this process has seen must still be there, unless retention has deleted it. */
  async function checkHead(): Promise<void> {
    const head = await store.head();
    if (known !== undefined) {
      const hash = await store.hashAt(known.seq);
      if (hash !== known.hash) {
        log.error({ expected: known, found: { seq: known.seq, hash }, head }, "the audit log was cut or replaced");
      }
    }
    known = head;
    log.info({ seq: head.seq, hash: head.hash }, "the audit log's last entry");
  }

  async function forget(leading: AbortSignal): Promise<boolean> {
    let count = 0;
    for (let batch = 0; batch < BATCHES && !leading.aborted; batch++) {
      const deleted = await store.forget(now() - keepMs, { limit: BATCH, now: now() });
      count += deleted;
      if (deleted === BATCH) continue;
      if (count > 0) log.info({ count }, "deleted audit entries that are older than SVC_AUDIT_KEEP_DAYS");
      return true;
    }
    log.info({ count }, "deleted old audit entries, more are left");
    return false;
  }

  return loop({ name: "audit log", everyMs, log }, async () => {
    noteLeftOut();
    if (now() < dueAt) return;
    await checkHead();
    const leading = await leases.lead("audit");
    if (leading === undefined || (await forget(leading))) dueAt = now() + HOUR_MS;
  });
}
