// One closing line for all the test runs: adds up the reports vitest wrote into a directory.
// Exit status 1 when a test failed, was skipped without being meant to, or none ran at all.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const directory = process.argv[2];
const total = { passed: 0, failed: 0, skipped: 0 };
for (const name of readdirSync(directory)) {
  const report = JSON.parse(readFileSync(join(directory, name), "utf8"));
  total.passed += report.numPassedTests;
  // A file that could not be loaded has no tests, but it failed all the same.
  const broken = report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
  total.failed += report.numFailedTests + broken.length;
  total.skipped += report.numPendingTests + report.numTodoTests;
}
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
process.stdout.write(`${total.passed} passed, ${total.failed} failed${skipped}\n`);
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);
