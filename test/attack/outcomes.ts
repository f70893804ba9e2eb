/** Judges each attack by the outcomes that test/support/runner/results-reporter.ts recorded. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Attack, attacks } from "./table.ts";

interface Outcome {
  readonly state: "passed" | "failed" | "skipped";
  /** `test/FILE > NAME`; only `test/FILE` when the whole file failed. */
  readonly name: string;
}

type Verdict = "stopped" | "NOT stopped" | "not run";

interface Judged extends Attack {
  readonly group: string;
  readonly verdict: Verdict;
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

/** Gives every attack of the table its verdict. */
export function judge(outcomes: readonly Outcome[]): readonly Judged[] {
  return Object.entries(attacks).flatMap(([group, some]) =>
    some.map((one) => ({ ...one, group, verdict: verdictOn(one, outcomes) })),
  );
}

/**
 * One failed test is enough for "NOT stopped", because the attack in it succeeded. A file that could not run proves nothing.
 */
function verdictOn({ file, named = "" }: Attack, outcomes: readonly Outcome[]): Verdict {
  const prefix = `test/${file} > `;
  const own = outcomes.filter(
    ({ name, state }) => state !== "skipped" && name.startsWith(prefix) && name.slice(prefix.length).includes(named),
  );
  if (own.some(({ state }) => state === "failed")) return "NOT stopped";
  return own.length === 0 ? "not run" : "stopped";
}

/** One line, such as `attacks: 70 stopped, 0 NOT stopped, 3 not run`. */
export function summary(judged: readonly Judged[]): string {
  const count = (verdict: Verdict) => judged.filter((one) => one.verdict === verdict).length;
  return `attacks: ${(["stopped", "NOT stopped", "not run"] as const).map((one) => `${count(one)} ${one}`).join(", ")}`;
}
