/** Collects decisions about one sandbox's flows and sends them to the agent in batches: equal ones together, bounded. */

import type { NetworkLogEntry } from "../../../shared/agent-api/network-shapes.ts";

const EVERY_MS = 1_000;
/** Different entries per second; more is a scan. */
const MOST_ENTRIES = 100;

export type Noted = Omit<NetworkLogEntry, "at" | "count"> & { readonly at?: number };

export interface Decisions {
  note(entry: Noted): void;
  /** Counts an entry that is not logged. */
  omit(): void;
  /** Sends the collected decisions now. */
  flush(): void;
}

export type SayDecisions = (entries: readonly NetworkLogEntry[], suppressed: number) => void;

/** Entries with the same key become one. */
export function entryKey({ protocol, address, port, name, recordType, verdict, rule }: Noted): string {
  return JSON.stringify([protocol, address, port, name, recordType, verdict, rule]);
}

/** Sends at most one batch in `everyMs`. */
export function decisionBatches(say: SayDecisions, now = Date.now, everyMs = EVERY_MS): Decisions {
  const batch = new Map<string, NetworkLogEntry>();
  let suppressed = 0;
  let timer: NodeJS.Timeout | undefined;

  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (batch.size === 0 && suppressed === 0) return;
    const entries = [...batch.values()];
    const over = suppressed;
    batch.clear();
    suppressed = 0;
    say(entries, over);
  };

  const later = () => {
    timer ??= setTimeout(flush, everyMs);
  };

  return {
    flush,
    omit() {
      suppressed += 1;
      later();
    },
    note({ at = now(), ...entry }) {
      const key = entryKey(entry);
      const before = batch.get(key);
      if (before === undefined && batch.size >= MOST_ENTRIES) suppressed += 1;
      else
        batch.set(
          key,
          before === undefined ? { ...entry, at, count: 1 } : together(before, { ...entry, at, count: 1 }),
        );
      later();
    },
  };
}

function together(a: NetworkLogEntry, b: NetworkLogEntry): NetworkLogEntry {
  return {
    ...a,
    at: Math.min(a.at, b.at),
    count: a.count + b.count,
    sentBytes: a.sentBytes + b.sentBytes,
    receivedBytes: a.receivedBytes + b.receivedBytes,
  };
}
