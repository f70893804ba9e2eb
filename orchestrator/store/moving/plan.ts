/** In which order the tables of one database are copied into another, and in what pieces. Pure. */

import { AppError } from "../../../shared/http/errors.ts";

/** Beyond what a statement of PostgreSQL can hold (65 535). */
const MOST_VALUES = 20_000;
const MOST_ROWS = 500;

/** A table, and those that its foreign keys name. */
export interface TableReferences {
  readonly name: string;
  readonly references: readonly string[];
}

/** Each table after those that its rows name, and otherwise in the order of names. */
export function copyOrder(tables: readonly TableReferences[]): readonly string[] {
  const left = new Map(tables.map(({ name, references }) => [name, references.filter((other) => other !== name)]));
  const order: string[] = [];
  while (left.size > 0) {
    const ready = [...left].filter(([, references]) => !references.some((other) => left.has(other)));
    if (ready.length === 0) throw new AppError("internal", `these tables name each other: ${[...left.keys()].join()}`);
    for (const [name] of ready.sort(([one], [other]) => (one < other ? -1 : 1))) {
      order.push(name);
      left.delete(name);
    }
  }
  return order;
}

/** Rows of one statement. */
export function rowsAtOnce(columns: number): number {
  return Math.max(1, Math.min(MOST_ROWS, Math.floor(MOST_VALUES / Math.max(1, columns))));
}

/** The tables whose numbers of records differ, in words. */
export function differentCounts(
  source: Readonly<Record<string, number>>,
  target: Readonly<Record<string, number>>,
): readonly string[] {
  const names = [...new Set([...Object.keys(source), ...Object.keys(target)])].sort();
  return names
    .filter((name) => source[name] !== target[name])
    .map((name) => `${name}: ${source[name] ?? "no table"} in SQLite, ${target[name] ?? "no table"} in PostgreSQL`);
}
