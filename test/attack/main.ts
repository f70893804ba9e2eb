/**
 * `npm run attack -- --flood`: runs the resource floods against a running platform (flood/run.ts).
 * `npm run attack -- [PLACE] [--summary]`: prints the table of attacks with the result of each in the last run of the tests.
 * PLACE is a file or directory of outcomes; the default is test-results, which scripts/test writes. The exit status is 1
 * when an attack was not stopped, or was not tried.
 * `npm run attack -- --starters PLACE`: the table of desktops, browsers and agents, whose tests scripts/test does not run.
 */

import { readOutcomes } from "../support/runner/outcomes.ts";
import { runFloods } from "./flood/run.ts";
import { judge, summary } from "./outcomes.ts";
import { attacks, attacksOfStarters } from "./table.ts";

const given = process.argv.slice(2);
if (given.includes("--flood")) process.exit((await runFloods()) ? 0 : 1);

const place = given.find((word) => !word.startsWith("--")) ?? new URL("../../test-results", import.meta.url).pathname;
const judged = judge(readOutcomes(place), given.includes("--starters") ? attacksOfStarters : attacks);
if (!given.includes("--summary")) {
  for (const [at, { group, what, must, verdict, file, named }] of judged.entries()) {
    if (group !== judged[at - 1]?.group) console.log(`\n${group}`);
    console.log(`  ${verdict.padEnd(11)}  ${what} → ${must}`);
    if (verdict !== "stopped") console.log(`               test/${file}${named === undefined ? "" : `: ${named}`}`);
  }
  console.log();
}
console.log(summary(judged));
process.exitCode = judged.some(({ verdict }) => verdict !== "stopped") ? 1 : 0;
