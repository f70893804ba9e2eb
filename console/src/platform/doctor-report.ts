/** The doctor's report of a node's machine, in the order in which an operator reads it. Pure. */

import type { MachineReport } from "../../../shared/api/nodes/doctor.ts";

type Result = MachineReport["checks"][number];

export interface Read {
  /** Failures, then warnings: the first one is the one to look at. */
  readonly wrong: readonly Result[];
  readonly unseen: readonly Result[];
  readonly passed: readonly Result[];
  readonly summary: string;
}

export function readReport({ checks }: Pick<MachineReport, "checks">): Read {
  const of = (...wanted: readonly Result["status"][]) => checks.filter(({ status }) => wanted.includes(status));
  const [failed, warnings, unseen, passed] = [of("failed"), of("warning"), of("unknown"), of("ok")];
  return {
    wrong: [...failed, ...warnings],
    unseen,
    passed,
    summary: [
      failed.length === 0 ? "No failure" : counted(failed.length, "failure"),
      counted(warnings.length, "warning"),
      `${counted(passed.length, "check")} passed`,
      ...(unseen.length === 0 ? [] : [`${unseen.length} could not be seen`]),
    ].join(", "),
  };
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
