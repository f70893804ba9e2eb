// The end of all the test runs: what failed, and one closing line. Adds up the files that test/support/results-reporter.ts
// wrote into a directory, also those of a run that was cut short.
// Exit status 1 when a test failed, or none ran at all.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const directory = process.argv[2];
const outcomes = readdirSync(directory).flatMap((name) =>
  readFileSync(join(directory, name), "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line)),
);
const count = (state) => outcomes.filter((one) => one.state === state).length;
for (const { name, message = "" } of outcomes.filter((one) => one.state === "failed")) {
  process.stdout.write(`FAILED: ${name}\n${message.replaceAll(/^/gm, "  ")}\n`);
}
const skipped = count("skipped") > 0 ? `, ${count("skipped")} skipped` : "";
process.stdout.write(`${count("passed")} passed, ${count("failed")} failed${skipped}\n`);
process.exit(count("failed") > 0 || count("passed") === 0 ? 1 : 0);
