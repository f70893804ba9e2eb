/**
 * Writes entries that belong to no change: ends of requests, refusals. All that wait share one transaction. What waits is
 * bounded; a database that refuses is asked again.
 */

import type { Log } from "../../shared/program/log.ts";
import type { NewEntry } from "../store/audit/append.ts";
import type { AuditStore } from "../store/audit/audit.ts";

export interface AuditWriter {
  add(entry: NewEntry): void;
  /** Resolves when everything added before is written, or could not be. */
  flush(): Promise<void>;
}

export interface AuditWriterDeps {
  readonly store: Pick<AuditStore, "addAll">;
  readonly log: Log;
}

const AT_ONCE = 200;
const WAITING = 10_000;
const TRIES = 3;
/** Entries that arrive within this time share a transaction. */
const TOGETHER_MS = 25;

export function createAuditWriter({ store, log }: AuditWriterDeps): AuditWriter {
  const waiting: NewEntry[] = [];
  let lost = 0;
  let writing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function write(): Promise<void> {
    let tries = 0;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, AT_ONCE);
      try {
        await store.addAll(batch);
        waiting.splice(0, batch.length);
        tries = 0;
      } catch (error) {
        // They stay, and the next entry or the next flush tries again.
        if (++tries === TRIES) {
          log.error({ err: error, waiting: waiting.length }, "could not write audit entries that belong to no change");
          return;
        }
      }
    }
  }

  function start(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  }

  return {
    add(entry) {
      if (waiting.length < WAITING) waiting.push(entry);
      else if (lost++ % WAITING === 0) log.error({ lost }, "dropped audit entries: the database does not take them");
      timer ??= setTimeout(() => void start(), TOGETHER_MS);
    },
    async flush() {
      if (waiting.length > 0) await start();
    },
  };
}
