// Prints the failures of all test runs and one closing line. Adds up the files that
// test/support/runner/results-reporter.ts wrote into a directory, also those of a run that was cut short.
// Exit status 1 when a test failed, when no test ran, or when the name of a skipped test does not say when it runs.
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
const unmeant = outcomes.filter((one) => one.state === "skipped" && !/\(only with SVC_/.test(one.name));
for (const { name } of unmeant) process.stdout.write(`SKIPPED without a reason in its name: ${name}\n`);
const skipped = count("skipped") > 0 ? `, ${count("skipped")} skipped` : "";
process.stdout.write(`${count("passed")} passed, ${count("failed")} failed${skipped}\n`);
process.exit(count("failed") > 0 || count("passed") === 0 || unmeant.length > 0 ? 1 : 0);
