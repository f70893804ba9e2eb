/** Detects processes under a debugger: CRIU cannot dump them, and takes ten seconds to report that. */

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
    // The process ended meanwhile.
    return false;
  }
}
