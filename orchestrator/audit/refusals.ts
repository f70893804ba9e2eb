/** Bounds the entries of refused requests: a minute of one caller, and of all unidentified callers, has a limited number. */

import { LRUCache } from "lru-cache";

export interface Refusals {
  /** Whether the refusal is written; one that is not is counted. */
  admit(who: string, identified: boolean): boolean;
  /** The counts of the minutes that have passed, once. */
  takeLeftOut(): readonly { readonly who: string; readonly count: number }[];
}

/** Entries of one caller in a minute. */
const EACH = 20;
/** The log takes so many entries in a minute from all callers without right credentials, who can use any number of addresses. */
const STRANGERS = 60;
const MINUTE_MS = 60_000;
const REMEMBERED = 10_000;
/** Stands for all callers without right credentials. */
export const ALL_STRANGERS = "";

interface Counted {
  minute: number;
  admitted: number;
  leftOut: number;
}

export function createRefusals(now: () => number): Refusals {
  const passed = new Map<string, number>();
  const counts = new LRUCache<string, Counted>({
    max: REMEMBERED,
    dispose: ({ leftOut }, who, reason) => {
      if (reason === "evict") keep(who, leftOut);
    },
  });

  function keep(who: string, leftOut: number): void {
    if (leftOut === 0) return;
    // The counts of callers that are too many to list go to all of them together.
    const name = passed.size < REMEMBERED || passed.has(who) ? who : ALL_STRANGERS;
    passed.set(name, (passed.get(name) ?? 0) + leftOut);
  }

  function counted(who: string): Counted {
    const minute = Math.floor(now() / MINUTE_MS);
    const known = counts.get(who);
    if (known?.minute === minute) return known;
    if (known !== undefined) keep(who, known.leftOut);
    const fresh = { minute, admitted: 0, leftOut: 0 };
    counts.set(who, fresh);
    return fresh;
  }

  return {
    admit(who, identified) {
      const own = counted(who);
      if (own.admitted >= EACH) {
        own.leftOut++;
        return false;
      }
      if (!identified) {
        const all = counted(ALL_STRANGERS);
        if (all.admitted >= STRANGERS) {
          all.leftOut++;
          return false;
        }
        all.admitted++;
      }
      own.admitted++;
      return true;
    },
    takeLeftOut() {
      // A copy: counting moves the caller to the end of the map.
      const callers = [...counts.keys()];
      for (const who of callers) counted(who);
      const taken = [...passed].map(([who, count]) => ({ who, count }));
      passed.clear();
      return taken;
    },
  };
}
