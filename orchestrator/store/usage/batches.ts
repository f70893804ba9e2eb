/** Statements about many rows: in batches of few lengths, each length compiled once, because compiling takes longer than running. */

import type { CompiledQuery } from "kysely";

/** From the longest: few enough variables for a statement of either database. */
const LENGTHS = [256, 64, 16, 4, 1] as const;

/** Runs `work` on one batch after the other. */
export async function inBatches<T>(
  items: readonly T[],
  work: (batch: readonly T[]) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  for (const length of LENGTHS) {
    for (; items.length - next >= length; next += length) await work(items.slice(next, next + length));
  }
}

/** @param compile makes the statement for a number of rows; each run has parameters of its own */
export function compiledForRows<R>(
  compile: (count: number) => CompiledQuery<R>,
): (count: number, parameters: readonly unknown[]) => CompiledQuery<R> {
  const compiled = new Map<number, CompiledQuery<R>>();
  return (count, parameters) => {
    const known = compiled.get(count) ?? compile(count);
    compiled.set(count, known);
    return { ...known, parameters };
  };
}
