/**
 * `npm run cases -- [PLACE] [--summary]`: prints the table of cases from the field, each with its result in the last run of the
 * tests. PLACE is a file or directory of outcomes; the default is test-results, which scripts/test writes. The exit status is 1
 * when a case did not hold, or was not tried.
 */

import { outcomeOf, readOutcomes } from "../support/runner/outcomes.ts";
import { cases } from "./table.ts";

const VERDICTS = { passed: "holds", failed: "DOES NOT HOLD", "not run": "not run" } as const;

const given = process.argv.slice(2);
const place = given.find((word) => !word.startsWith("--")) ?? new URL("../../test-results", import.meta.url).pathname;
const outcomes = readOutcomes(place);
const counts = { holds: 0, "DOES NOT HOLD": 0, "not run": 0 };
for (const [kind, some] of Object.entries(cases)) {
  if (!given.includes("--summary")) console.log(`\n${kind}`);
  for (const one of some) {
    const verdict = VERDICTS[outcomeOf(one, outcomes)];
    counts[verdict] += 1;
    if (given.includes("--summary")) continue;
    const { input, before, now, isSibling, file, named } = one;
    console.log(`  ${verdict.padEnd(13)}  ${input}${isSibling ? " (sibling)" : ""}`);
    console.log(`                   before: ${before}`);
    console.log(`                   now:    ${now}`);
    if (verdict !== "holds") console.log(`                   test/${file}${named === undefined ? "" : `: ${named}`}`);
  }
}
if (!given.includes("--summary")) console.log();
console.log(
  `cases from the field: ${counts.holds} hold, ${counts["DOES NOT HOLD"]} DO NOT HOLD, ${counts["not run"]} not run`,
);
process.exitCode = counts["DOES NOT HOLD"] + counts["not run"] > 0 ? 1 : 0;
