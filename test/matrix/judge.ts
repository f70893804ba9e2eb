/** What a program's answers before and after a way of storing it mean, and the table of all of them. Pure. */

import type { Program } from "./program.ts";

/** What is done with each program, in this order. */
export const WAYS = ["start", "fork", "pause", "disk", "rewind", "boot"] as const;
export type Way = (typeof WAYS)[number];

const TITLES: Readonly<Record<Way, string>> = {
  start: "starts",
  fork: "fork",
  pause: "pause, resume",
  disk: "resume from the disk",
  rewind: "rewind",
  boot: "boot from the disk",
};

/** A program's answer. */
export interface Seen {
  /** Which one it is. */
  readonly me: string;
  readonly n: number;
}

export type Outcome =
  | { readonly is: "works"; readonly ms: number }
  | { readonly is: "refused"; readonly reason: string }
  | { readonly is: "fails"; readonly reason: string };

export interface Row {
  readonly name: string;
  /** Ways that were not gone have none. */
  readonly outcomes: Readonly<Partial<Record<Way, Outcome>>>;
}

/** @throws {Error} the last line is no answer */
export function seenIn(printed: string): Seen {
  const line = printed.trim().split("\n").at(-1) ?? "";
  const [, me, n] = /^(\S+)\s+(\d+)$/.exec(line.trim()) ?? [];
  if (me === undefined || n === undefined) throw new Error(`the program answered '${line}'`);
  return { me, n: Number(n) };
}

/** Why the answer is not that of the same program which has gone on; undefined: it is. */
export function problemOf(
  { counts, isDurable }: Pick<Program, "counts" | "isDurable">,
  way: Way,
  before: Seen,
  after: Seen,
): string | undefined {
  // A boot starts every program again; of some the state is on the disk.
  if (way === "boot" && !isDurable) return undefined;
  if (before.me !== after.me) return `another one answers: ${after.me}, not ${before.me}`;
  const isRight = counts === "asks" ? after.n === before.n + 1 : after.n > before.n;
  return isRight ? undefined : `it counted from ${before.n} to ${after.n}`;
}

/** The ways of a program: one that cannot be stored is never booted from what was stored. */
export function waysOf({ refused }: Pick<Program, "refused">): readonly Way[] {
  return refused === undefined ? WAYS : WAYS.filter((way) => way !== "boot");
}

/** Whether the way ended as it should: a program that cannot be stored is refused, with the reason. */
export function isAsWanted({ refused }: Pick<Program, "refused">, way: Way, outcome: Outcome | undefined): boolean {
  if (outcome === undefined) return false;
  if (refused === undefined || way === "start") return outcome.is === "works";
  return outcome.is === "refused" && refused.test(outcome.reason);
}

/** The table, as Markdown. */
export function tableOf(rows: readonly Row[]): string {
  return [...HEAD, ...rows.map(lineOf)].join("\n");
}

/**
 * The page of the table, in which rows of this run take the place of earlier ones, so that several runs make it.
 * @param before the page as it is; empty: there is none
 * @param names of all rows, in their order
 */
export function pageOf(before: string, rows: readonly Row[], names: readonly string[]): string {
  const [head] = HEAD;
  const isOfTable = (line: string) => line.startsWith("| ") && line !== head;
  const earlier = before.split("\n").filter(isOfTable);
  const lines = [...earlier, ...rows.map(lineOf)];
  const byName = new Map(lines.map((line) => [line.slice(2, line.indexOf(" | ")), line]));
  const table = names.flatMap((name) => byName.get(name) ?? []);
  return `${[...PAGE, countOf(table, names.length), "", ...HEAD, ...table].join("\n")}\n`;
}

/** How many of all programs are what, in a sentence. */
function countOf(table: readonly string[], all: number): string {
  const failed = table.filter((row) => row.includes("**fails**")).length;
  const refused = table.filter((row) => row.includes("refused: ") && !row.includes("**fails**")).length;
  const works = table.length - failed - refused;
  const rest = [
    failed === 0 ? "" : `, ${failed} fail`,
    table.length === all ? "" : `, ${all - table.length} were not tried`,
  ];
  return `Of ${all} programs ${works} go on, ${refused} cannot be stored${rest.join("")}.`;
}

/**
 * The rows of one part of several, for runs in batches: every so many-th, so that long ones are spread.
 * @param part such as `2/5`
 * @throws {Error} it is no part
 */
export function partOf<T>(rows: readonly T[], part: string): readonly T[] {
  const [, number = "", parts = ""] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(part) ?? [];
  if (number === "" || Number(number) > Number(parts)) throw new Error(`'${part}' is no part such as 2/5`);
  return rows.filter((_, at) => at % Number(parts) === Number(number) - 1);
}

const PAGE = [
  "# What can be paused",
  "",
  "Real programs, each in a sandbox of its own, as `npm run matrix` found them: after each way of storing it the same program answers from",
  "inside, and goes on where it was. The times are those of one try from the call to the answer, and not of the storing alone; a boot from the",
  "disk starts the program again. What a column says of a program that cannot be stored is the reason that a caller gets. How it is judged:",
  "[test/matrix](../test/matrix/README.md).",
  "",
];

const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const HEAD = [line(["program", ...WAYS.map((way) => TITLES[way])]), `|${"---|".repeat(WAYS.length + 1)}`];

function lineOf({ name, outcomes }: Row): string {
  const cell = (outcome: Outcome | undefined) => {
    if (outcome === undefined) return "";
    if (outcome.is === "works") return `${(outcome.ms / 1000).toFixed(1)} s`;
    const reason = outcome.reason.replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
    return outcome.is === "refused" ? `refused: ${reason}` : `**fails**: ${reason}`;
  };
  return line([name, ...WAYS.map((way) => cell(outcomes[way]))]);
}
