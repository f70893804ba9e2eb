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
  const cell = (outcome: Outcome | undefined) => {
    if (outcome === undefined) return "";
    if (outcome.is === "works") return `${(outcome.ms / 1000).toFixed(1)} s`;
    const reason = outcome.reason.replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
    return outcome.is === "refused" ? `refused: ${reason}` : `**fails**: ${reason}`;
  };
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(["program", ...WAYS.map((way) => TITLES[way])]),
    `|${"---|".repeat(WAYS.length + 1)}`,
    ...rows.map(({ name, outcomes }) => line([name, ...WAYS.map((way) => cell(outcomes[way]))])),
  ].join("\n");
}
