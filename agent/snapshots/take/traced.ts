/** A process under a debugger cannot be dumped, and CRIU takes ten seconds to say so. */

import { readFileSync } from "node:fs";
import { AppError } from "../../../shared/http/errors.ts";

/** @throws {AppError} snapshot_failed */
export function refuseTraced(pids: readonly number[]): void {
  if (pids.some(traced))
    throw new AppError(
      "snapshot_failed",
      "the sandbox's memory cannot be stored: a process is being debugged; it goes on running",
    );
}

function traced(pid: number): boolean {
  try {
    return /^TracerPid:\s+[1-9]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // It ended in between.
    return false;
  }
}
