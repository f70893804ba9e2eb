/** Decides which frozen containers have been kept long enough. Pure. */

export interface FrozenView {
  readonly kept: readonly {
    readonly id: string;
    readonly since: number;
    /** Its processes have run since their memory was stored: it holds the sandbox's newest state and is never evicted. */
    readonly ran: boolean;
  }[];
  readonly now: number;
  readonly keepMs: number;
  readonly freeMemory: number;
  readonly reservedMemory: number;
}

/** Oldest first. While memory is short only one per round, because the next round sees how much that freed. */
export function planEviction({ kept, now, keepMs, freeMemory, reservedMemory }: FrozenView): string[] {
  const oldest = kept.filter(({ ran }) => !ran).sort((a, b) => a.since - b.since);
  const over = oldest.filter(({ since }) => now - since >= keepMs).map(({ id }) => id);
  if (over.length > 0 || freeMemory >= reservedMemory) return over;
  return oldest.slice(0, 1).map(({ id }) => id);
}
