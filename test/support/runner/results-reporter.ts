/**
 * Writes each test's outcome as soon as it is known, one JSON object a line, into the file that `SVC_TEST_RESULTS` names, so
 * that a run that is cut short has recorded its failures. scripts/host/test/sum-up-tests.mjs reads the file.
 */

import { appendFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

interface Outcome {
  readonly state: "passed" | "failed" | "skipped";
  readonly name: string;
  /** How long it took, with the hooks around it. */
  readonly ms?: number;
  /** The first lines of the error, for a failure. */
  readonly message?: string;
}

const MESSAGE_LENGTH = 600;

export default class ResultsReporter implements Reporter {
  private readonly file = process.env.SVC_TEST_RESULTS;

  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    if (state === "pending") return;
    const ms = Math.round(test.diagnostic()?.duration ?? 0);
    this.write({ state, name: `${test.module.relativeModuleId} > ${test.fullName}`, ms, ...messageOf(errors) });
  }

  /** Records failures outside of tests: a file that could not be loaded, or a hook around the whole file. */
  onTestModuleEnd(module: TestModule): void {
    const errors = [module, ...module.children.allSuites()].flatMap((one) => one.errors());
    if (errors.length > 0) this.write({ state: "failed", name: module.relativeModuleId, ...messageOf(errors) });
  }

  onTestRunEnd(_modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    if (unhandled.length > 0) this.write({ state: "failed", name: "outside of a test", ...messageOf(unhandled) });
  }

  private write(outcome: Outcome): void {
    if (this.file !== undefined) appendFileSync(this.file, `${JSON.stringify(outcome)}\n`);
  }
}

function messageOf(errors: readonly { readonly message: string }[] | undefined): { message?: string } {
  if (errors === undefined || errors.length === 0) return {};
  return {
    message: errors
      .map(({ message }) => message)
      .join("\n")
      .slice(0, MESSAGE_LENGTH),
  };
}
