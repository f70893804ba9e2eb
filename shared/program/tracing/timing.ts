/** Adds up how long the parts of one piece of work take, and writes them as the header `Server-Timing`. */

export interface Timing {
  /** Runs the work and adds its duration to the part, also when it fails. */
  measure<T>(part: string, work: () => Promise<T>): Promise<T>;
  add(part: string, ms: number): void;
  /** For work beside other work: the longest of each part counts. */
  beside(): Timing;
  /** Milliseconds. */
  parts(): ReadonlyMap<string, number>;
}

/** @param ended hears of each part that was measured, with the moment of its begin by `performance.now()` */
export function createTiming(ended: (part: string, begun: number, ms: number) => void = () => undefined): Timing {
  const sums = new Map<string, number>();
  const children: Timing[] = [];
  const add = (part: string, ms: number) => void sums.set(part, (sums.get(part) ?? 0) + ms);
  return {
    add,
    async measure(part, work) {
      const begun = performance.now();
      try {
        return await work();
      } finally {
        const ms = performance.now() - begun;
        add(part, ms);
        ended(part, begun, ms);
      }
    },
    beside() {
      const child = createTiming(ended);
      children.push(child);
      return child;
    },
    parts() {
      const longest = new Map<string, number>();
      for (const [part, ms] of children.flatMap((child) => [...child.parts()]))
        longest.set(part, Math.max(longest.get(part) ?? 0, ms));
      const all = new Map(sums);
      for (const [part, ms] of longest) all.set(part, (all.get(part) ?? 0) + ms);
      return all;
    },
  };
}

/** Measures nothing. */
export const noTiming: Timing = {
  measure: (_part, work) => work(),
  add: () => undefined,
  beside: () => noTiming,
  parts: () => new Map(),
};

/** What the header's names may consist of, here. */
const NAME = /^[a-z][a-z.]{0,31}$/;

/** For example `queue;dur=0.1, node;dur=12.5`. */
export function serverTiming(parts: Iterable<readonly [string, number]>): string {
  return [...parts]
    .filter(([name, ms]) => NAME.test(name) && Number.isFinite(ms))
    .map(([name, ms]) => `${name};dur=${Math.max(0, ms).toFixed(1)}`)
    .join(", ");
}
