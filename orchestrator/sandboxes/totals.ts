/**
 * The totals that each page of a list names. The first page counts; the pages behind it repeat that count for some seconds, so
 * that a walk through a long list counts once, and names one total.
 */

import { LRUCache } from "lru-cache";
import { atMost } from "../../shared/program/at-most.ts";
import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import type { SandboxFilter } from "../store/sandboxes/filter.ts";

type Counts = ReadonlyMap<SandboxState, number>;

export interface Totals {
  /** The sandboxes of each state. @param isFirst the page begins the list */
  of(filter: SandboxFilter, isFirst: boolean): Promise<Counts>;
}

export interface TotalsDeps {
  readonly count: (filter: SandboxFilter) => Promise<Counts>;
  readonly now: () => number;
}

const REPEATED_MS = 5_000;
const REMEMBERED = 1_000;

export function createTotals({ count, now }: TotalsDeps): Totals {
  const counted = new LRUCache<string, { readonly at: number; readonly counts: Counts }>(atMost(REMEMBERED));
  return {
    async of(filter, isFirst) {
      const key = keyOf(filter);
      const known = isFirst ? undefined : counted.get(key);
      const age = now() - (known?.at ?? 0);
      if (known !== undefined && age >= 0 && age < REPEATED_MS) return known.counts;
      const at = now();
      const counts = await count(filter);
      counted.set(key, { at, counts });
      return counts;
    },
  };
}

/** Without `endedSince`, which moves with the clock. */
function keyOf({ endedSince: _moves, metadata, ...filter }: SandboxFilter): string {
  return JSON.stringify([filter, [...(metadata ?? [])]]);
}
