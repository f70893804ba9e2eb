/** Judges each attack by the outcomes of its tests. */

import { type Outcome, outcomeOf } from "../support/runner/outcomes.ts";
import { type Attack, attacks } from "./table.ts";

/** A failed test is "NOT stopped", because the attack in it succeeded. */
const VERDICTS = { passed: "stopped", failed: "NOT stopped", "not run": "not run" } as const;

interface Judged extends Attack {
  readonly group: string;
  readonly verdict: (typeof VERDICTS)[keyof typeof VERDICTS];
}

/** Gives every attack of the table its verdict. */
export function judge(outcomes: readonly Outcome[], table = attacks): readonly Judged[] {
  return Object.entries(table).flatMap(([group, some]) =>
    some.map((one) => ({ ...one, group, verdict: VERDICTS[outcomeOf(one, outcomes)] })),
  );
}

/** One line, such as `attacks: 70 stopped, 0 NOT stopped, 3 not run`. */
export function summary(judged: readonly Judged[]): string {
  const count = (verdict: Judged["verdict"]) => judged.filter((one) => one.verdict === verdict).length;
  return `attacks: ${Object.values(VERDICTS)
    .map((one) => `${count(one)} ${one}`)
    .join(", ")}`;
}
