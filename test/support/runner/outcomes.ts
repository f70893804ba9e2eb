/** What tables of tests read: the outcomes that results-reporter.ts recorded, and the tests that a row names. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export interface Outcome {
  readonly state: "passed" | "failed" | "skipped";
  /** `test/FILE > NAME`; only `test/FILE` when the whole file failed. */
  readonly name: string;
}

/** The tests of a row. */
export interface Proof {
  /** The file of the tests, below test/. */
  readonly file: string;
  /** A part of the tests' names; without it, every test of the file counts. */
  readonly named?: string;
}

/** Reads the outcomes of a file, or of all files of a directory; none when there is no such place. */
export function readOutcomes(place: string): readonly Outcome[] {
  const about = statSync(place, { throwIfNoEntry: false });
  if (about === undefined) return [];
  const files = about.isDirectory() ? readdirSync(place).map((name) => join(place, name)) : [place];
  return files.flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as Outcome),
  );
}

/** One failed test is enough for "failed". A file that could not run proves nothing. */
export function outcomeOf({ file, named = "" }: Proof, outcomes: readonly Outcome[]): "passed" | "failed" | "not run" {
  const prefix = `test/${file} > `;
  const own = outcomes.filter(
    ({ name, state }) => state !== "skipped" && name.startsWith(prefix) && name.slice(prefix.length).includes(named),
  );
  if (own.some(({ state }) => state === "failed")) return "failed";
  return own.length === 0 ? "not run" : "passed";
}

/**
 * Reads lines of the form `first | second | FILE | NAMED`, of which NAMED may be absent.
 * @throws {Error} a line has fewer columns, or more
 */
export function rowsOf(text: string): readonly (Proof & { readonly columns: readonly [string, string] })[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [first, second, file, named, ...more] = line.split(" | ");
      if (first === undefined || second === undefined || file === undefined || more.length > 0)
        throw new Error(`the row of a table is not whole: ${line}`);
      return { columns: [first, second], file, ...(named === undefined ? {} : { named }) };
    });
}
