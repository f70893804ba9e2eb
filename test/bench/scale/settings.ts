/** What the measurements of several programs share. */

import { cpus } from "node:os";

/** Without limits that would answer in the place of the orchestrator. */
export const UNLIMITED = {
  SVC_RATE_LIMIT_CREATE_PER_SECOND: "100000",
  SVC_RATE_LIMIT_WRITE_PER_SECOND: "100000",
  SVC_RATE_LIMIT_READ_PER_SECOND: "100000",
  SVC_MAX_PROJECT_SANDBOXES: "1000000",
};

/** Whether so many programs that work at the same time can have a core each. */
export function haveCores(programs: number): boolean {
  return cpus().length >= programs;
}

/** Says so. */
export function coresFor(programs: number): string {
  const are = `${programs} programs work at the same time on ${cpus().length} cores`;
  return haveCores(programs) ? `${are}, one for each` : `${are}: they are not free, so the ratio says little`;
}
