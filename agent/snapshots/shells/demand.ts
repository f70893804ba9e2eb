/** How many shells of each flavour are kept: as many as were asked for together lately. Pure but for its own record. */

/** Asked for within this time counts as together: copies of one fork, or of a burst. */
const TOGETHER_MS = 5_000;
/** How long a flavour that nobody asks for any more keeps its shells. */
const KEEP_MS = 900_000;
const MOST_FLAVOURS = 64;

interface Asked {
  /** The most that were asked for together. */
  most: number;
  /** What was asked for since `since`. */
  count: number;
  since: number;
  last: number;
}

export interface Demand {
  /** A copy of this flavour is made now. */
  asked(key: string, at: number): void;
  /** A copy of this flavour will be made soon. */
  expected(key: string, at: number): void;
  /** Shells to keep, by key, those of the flavour that was asked for last first; together not more than `most`. */
  wanted(most: number, at: number): ReadonlyMap<string, number>;
}

export function createDemand(): Demand {
  /** In the order in which they were asked for, the last one last. */
  const known = new Map<string, Asked>();

  const touch = (key: string, at: number): Asked => {
    const asked = known.get(key) ?? { most: 1, count: 0, since: at, last: at };
    known.delete(key);
    known.set(key, asked);
    asked.last = at;
    for (const oldest of known.keys()) {
      if (known.size <= MOST_FLAVOURS) break;
      known.delete(oldest);
    }
    return asked;
  };

  return {
    asked(key, at) {
      const asked = touch(key, at);
      if (at - asked.since > TOGETHER_MS) Object.assign(asked, { count: 0, since: at });
      asked.count++;
      asked.most = Math.max(asked.most, asked.count);
    },
    expected(key, at) {
      touch(key, at);
    },
    wanted(most, at) {
      const wanted = new Map<string, number>();
      let left = most;
      for (const [key, { most: together, last }] of [...known].reverse()) {
        if (at - last > KEEP_MS) {
          known.delete(key);
          continue;
        }
        const count = Math.min(together, left);
        if (count > 0) wanted.set(key, count);
        left -= count;
      }
      return wanted;
    },
  };
}
