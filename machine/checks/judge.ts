/** Judges evidence by the checks. Pure. */

import type { Evidence } from "../evidence/evidence.ts";
import type { Check, Result } from "./check.ts";

const FIRST = { failed: 0, warning: 1, unknown: 2, ok: 3 } as const;

/** Failures first, then warnings, each in the order of the checks; a check that found several things has a result for each. */
export function judge(checks: readonly Check[], evidence: Evidence): readonly Result[] {
  return checks
    .flatMap((check): readonly Result[] => {
      const { id, section, severity, problem, fix } = check;
      const found = check.evidence(evidence);
      if (found === undefined)
        return [{ id, section, status: "unknown", problem, evidence: "it could not be seen", fix }];
      if (found.length === 0) return [{ id, section, status: "ok", problem, evidence: "", fix }];
      const status = severity === "fails" ? "failed" : "warning";
      return found.map((one) => ({
        id,
        section,
        status,
        problem,
        fix,
        ...(typeof one === "string" ? { evidence: one } : one),
      }));
    })
    .toSorted((a, b) => FIRST[a.status] - FIRST[b.status]);
}
