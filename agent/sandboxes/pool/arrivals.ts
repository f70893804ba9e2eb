/**
 * When each start was asked for first: one that had no turn, was refused and is asked for again keeps its place in the line.
 * The caller asks again within a second, or not at all.
 */

const FORGET_MS = 60_000;

export interface Arrivals {
  /** Unix milliseconds. */
  of(executionId: string): number;
  forget(executionId: string): void;
}

export function createArrivals(now: () => number): Arrivals {
  /** Oldest first. */
  const known = new Map<string, number>();
  return {
    of(executionId) {
      const at = now();
      for (const [id, since] of known) {
        if (at - since < FORGET_MS) break;
        known.delete(id);
      }
      const since = known.get(executionId) ?? at;
      known.set(executionId, since);
      return since;
    },
    forget: (executionId) => void known.delete(executionId),
  };
}
