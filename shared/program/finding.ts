/**
 * What a check of a machine found, as data: the check's name, the problem, its evidence and the way out. Logs, readiness,
 * `GET /nodes`, `agent --check` and error messages show the same finding, each in its own form.
 */

import { type Static, Type } from "typebox";

export const Finding = Type.Object(
  {
    id: Type.String({ description: "Name of the check, the same in every version", examples: ["network.forward"] }),
    problem: Type.String({ description: "What does not work, in one clause" }),
    evidence: Type.String({ description: "What the check saw: a rule, a setting, the words of a program" }),
    wayOut: Type.String({ description: "What the operator, or the caller, can do" }),
  },
  { additionalProperties: false },
);
export type Finding = Static<typeof Finding>;

/** Longest text of a report: a line of evidence is far shorter. */
export const REPORT_TEXT = 1_000;
/** Results of a report. The doctor has some eighty checks, and a check may find several things. */
export const REPORT_RESULTS = 200;

const reportText = (description: string) => Type.String({ maxLength: REPORT_TEXT, description });

/** What all checks of the doctor (`machine/`) found on one machine, failures first. The machine judges itself, and no program changes its report. */
export const MachineReport = Type.Object(
  {
    ok: Type.Boolean({ description: "Nothing has failed; warnings do not count" }),
    at: Type.String({ format: "date-time", description: "By the machine's clock" }),
    instance: Type.String({ maxLength: 64, description: "Name of the platform on that machine; empty: it has none" }),
    checks: Type.Array(
      Type.Object({
        id: reportText("Name of the check, as `svc doctor` has it"),
        section: reportText("What the check is about"),
        status: Type.Enum(["failed", "warning", "unknown", "ok"], {
          description: "`unknown`: it could not be seen from that machine, which is no failure",
        }),
        problem: reportText("What does not work where the check fails, in one clause"),
        evidence: reportText("What the check saw; empty where it passes"),
        wayOut: reportText("What the operator can do"),
      }),
      { maxItems: REPORT_RESULTS, description: "Failures first, then warnings, the cause before its effects" },
    ),
  },
  { description: "The doctor's report about the machine of a node, without secrets" },
);
export type MachineReport = Static<typeof MachineReport>;

/** In one line. */
export function findingText({ problem, evidence, wayOut }: Omit<Finding, "id">): string {
  return `${problem}: ${evidence}; ${wayOut}`;
}
