/** How much a flood may cost a program, and the table that shows what the floods cost. Pure. */

import type { Use } from "./memory.ts";

/**
 * How far memory may rise above its value before the flood: for buffers of some thousand connections, and garbage that Node
 * has not collected yet.
 */
const MOST_GROWTH_MB = 100;
/** How much of the added memory may stay: Node gives its heap back late. */
const MOST_LEFT_MB = 80;
/** How many added descriptors may stay: our programs keep connections between each other for the next call. */
const MOST_LEFT_DESCRIPTORS = 64;

export interface Course {
  readonly name: string;
  readonly before: Use;
  readonly worst: Use;
  readonly after: Use;
  /** The process's limit of open files. */
  readonly descriptorLimit: number;
}

/** One sentence for each bound that the program exceeded; empty when all is well. */
export function excesses({ name, before, worst, after, descriptorLimit }: Course): string[] {
  const grown = worst.memoryMb - before.memoryMb;
  const left = after.memoryMb - before.memoryMb;
  const held = after.descriptors - before.descriptors;
  return [
    ...(grown > MOST_GROWTH_MB ? [`${name} grew by ${grown} MB: ${MOST_GROWTH_MB} is the most`] : []),
    ...(isSettled({ before, after })
      ? []
      : [
          `${name} keeps ${left} MB and ${held} descriptors: ${MOST_LEFT_MB} and ${MOST_LEFT_DESCRIPTORS} are the most`,
        ]),
    ...(worst.descriptors >= descriptorLimit ? [`${name} had all ${descriptorLimit} descriptors in use`] : []),
  ];
}

export function isSettled({ before, after }: Pick<Course, "before" | "after">): boolean {
  return (
    after.memoryMb - before.memoryMb <= MOST_LEFT_MB && after.descriptors - before.descriptors <= MOST_LEFT_DESCRIPTORS
  );
}

/** Prints one row for each program: memory in MB, with the descriptors behind it. */
export function table(courses: readonly Course[]): string {
  const use = ({ memoryMb, descriptors }: Use) => `${memoryMb} MB, ${descriptors} fd`;
  const rows = courses.map(({ name, before, worst, after, descriptorLimit }) => [
    name,
    use(before),
    use(worst),
    use(after),
    `${before.memoryMb + MOST_GROWTH_MB} MB, ${descriptorLimit} fd`,
  ]);
  const all = [["program", "before", "worst", "after", "limit"], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(" | ")
      .trimEnd(),
  );
  return lines.join("\n");
}
