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

/** In one line. */
export function findingText({ problem, evidence, wayOut }: Omit<Finding, "id">): string {
  return `${problem}: ${evidence}; ${wayOut}`;
}
