/** Recent events of this sandbox, for the platform's logs: a ring bounded in bytes that drops the oldest entries. */

export type JournalLevel = "debug" | "info" | "warn" | "error";

export interface JournalEntry {
  /** Rises by one with every entry; a gap means that entries were dropped. */
  readonly seq: number;
  /** RFC 3339. */
  readonly timestamp: string;
  readonly level: JournalLevel;
  readonly logger: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface JournalPage {
  readonly entries: readonly JournalEntry[];
  /** The `after` of the next call. */
  readonly next: number;
}

/** Most bytes of the ring: of messages and names, plus an estimate of each entry's own size. */
const LARGEST_RING_BYTES = 1024 * 1024;
const ENTRY_OVERHEAD_BYTES = 200;

export class Journal {
  readonly #now: () => number;
  #entries: { readonly entry: JournalEntry; readonly size: number }[] = [];
  #first = 0;
  #size = 0;
  #seq = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  write(level: JournalLevel, logger: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#seq += 1;
    const timestamp = new Date(this.#now()).toISOString();
    const size = ENTRY_OVERHEAD_BYTES + 2 * (message.length + textLength(fields));
    this.#entries.push({ entry: { seq: this.#seq, timestamp, level, logger, message, fields }, size });
    this.#size += size;
    this.#trim();
  }

  /** Entries newer than `after`, oldest first. */
  read(after: number, limit: number): JournalPage {
    const live = this.#entries.slice(this.#first).map(({ entry }) => entry);
    const entries = live.filter(({ seq }) => seq > after).slice(0, limit);
    return { entries, next: entries.at(-1)?.seq ?? after };
  }

  /** Deletes all entries; numbers continue. */
  clear(): void {
    this.#entries = [];
    this.#first = 0;
    this.#size = 0;
  }

  #trim(): void {
    while (this.#size > LARGEST_RING_BYTES) {
      this.#size -= this.#entries[this.#first]?.size ?? 0;
      this.#first += 1;
    }
    // Moving the array at every entry would make a full ring slow.
    if (this.#first > 1024) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }
}

function textLength(fields: Readonly<Record<string, unknown>>): number {
  let length = 0;
  for (const value of Object.values(fields)) if (typeof value === "string") length += value.length;
  return length;
}
