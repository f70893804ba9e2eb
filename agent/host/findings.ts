/** What a node cannot do, as findings, and the errors that callers get for it. Pure. */

import { AppError } from "../../shared/http/errors.ts";
import { type Finding, findingText } from "../../shared/program/finding.ts";

const WHO_MENDS = "the operator runs './scripts/up', which installs CRIU, and looks at 'agent --check'";

/** @param detail why the probe failed */
export function noMemorySnapshots(detail: string): Finding {
  return {
    id: "memory.snapshots",
    problem: "this node can neither store nor restore the memory of sandboxes",
    evidence: detail,
    wayOut: `with memory: false the disk alone is kept or restored; ${WHO_MENDS}`,
  };
}

/** @param what the request, as a noun phrase: "a pause with memory" */
export function memoryRefusal(what: string, { problem, evidence, wayOut }: Finding): AppError {
  return new AppError(
    "memory_snapshots_unavailable",
    findingText({ problem: `${what} is refused, because ${problem}`, evidence, wayOut }),
  );
}

export function noOwnDisks(detail: string): Finding {
  return {
    id: "disks.own",
    problem: "sandboxes of this node have no disk of their own, so nothing limits what they write",
    evidence: detail,
    wayOut: "give the node loop devices and Docker's storage driver overlay2",
  };
}

export function noLazyPages(detail: string): Finding {
  return {
    id: "memory.lazy-pages",
    problem: "large memory is restored as a whole, which takes longer",
    evidence: detail,
    wayOut: "use a kernel with CONFIG_USERFAULTFD, and allow it to root",
  };
}
