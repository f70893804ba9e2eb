/**
 * `npm run faults -- [PLACE]`: prints the table of faults, each with its result in the last run of the tests. PLACE is a file or
 * directory of outcomes; the default is test-results, which scripts/test writes. Some faults are in sets that scripts/test does not
 * run, such as the reboot: the exit status is 1 only when a fault was not survived.
 */

import { outcomeOf, readOutcomes } from "../support/runner/outcomes.ts";
import { faults } from "./table.ts";

const VERDICTS = { passed: "survived", failed: "NOT SURVIVED", "not run": "not run" } as const;

const [place = new URL("../../test-results", import.meta.url).pathname] = process.argv.slice(2);
const outcomes = readOutcomes(place);
const counts = { survived: 0, "NOT SURVIVED": 0, "not run": 0 };
for (const [fault, some] of Object.entries(faults)) {
  console.log(`\n${fault}`);
  for (const one of some) {
    const verdict = VERDICTS[outcomeOf(one, outcomes)];
    counts[verdict] += 1;
    const { what, must, file, named } = one;
    console.log(`  ${verdict.padEnd(12)}  ${what} → ${must}`);
    if (verdict !== "survived") console.log(`                test/${file}${named === undefined ? "" : `: ${named}`}`);
  }
}
console.log(
  `\nfaults: ${counts.survived} survived, ${counts["NOT SURVIVED"]} NOT SURVIVED, ${counts["not run"]} not run`,
);
process.exitCode = counts["NOT SURVIVED"] > 0 ? 1 : 0;
