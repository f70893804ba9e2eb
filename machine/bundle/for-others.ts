/** Makes of the doctor's report what an operator reads in the console: it holds no secrets, and its size is bounded. Pure. */

import type { Result } from "../checks/check.ts";
import type { Report } from "../doctor/doctor.ts";
import type { Redact } from "./redact.ts";

/** As shared/program/finding.ts has them; a test compares. */
const TEXT = 1_000;
const RESULTS = 200;

interface Shown extends Omit<Report, "checks"> {
  readonly checks: readonly (Pick<Result, "id" | "section" | "status" | "problem" | "evidence"> & {
    /** The name that the API has for the fix. */
    readonly wayOut: string;
  })[];
}

/** Leaves out what `--fix` would do, because only root on the machine may run it. The first results are the worst ones. */
export function forOthers({ ok, at, instance, checks }: Report, redact: Redact): Shown {
  const shown = checks.slice(0, RESULTS).map(({ id, section, status, problem, evidence, fix }) => ({
    id,
    section,
    status,
    problem,
    // The whole text, as in a bundle: half of a value would not be known as one.
    evidence: cut(redact(evidence)),
    wayOut: cut(redact(fix)),
  }));
  return { ok, at, instance, checks: shown };
}

/** Between two words. */
function cut(text: string): string {
  if (text.length <= TEXT) return text;
  return `${/^[\s\S]*\s/.exec(text.slice(0, TEXT - 1))?.[0] ?? ""}…`;
}
