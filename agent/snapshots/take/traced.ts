/** Detects processes under a debugger: CRIU cannot dump them, and takes ten seconds to report that. */

import { readFileSync } from "node:fs";
import { AppError } from "../../../shared/http/errors.ts";
import { describeProcess, memoryNotStored } from "../criu/dump-log.ts";

/** @throws {AppError} snapshot_failed */
export function refuseTraced(pids: readonly number[]): void {
  for (const pid of pids) {
    const status = statusOf(pid);
    if (!/^TracerPid:\s+[1-9]/m.test(status)) continue;
    const id = /^NSpid:.*\s(\d+)$/m.exec(status)?.[1] ?? "?";
    const name = /^Name:\t(.*)$/m.exec(status)?.[1] ?? "?";
    throw new AppError("snapshot_failed", memoryNotStored(`a process is being debugged${describeProcess(id, name)}`));
  }
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    // The process ended meanwhile.
    return "";
  }
}
