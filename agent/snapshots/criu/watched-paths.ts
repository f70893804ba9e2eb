/** Tells CRIU where the files are that a frozen container watches (inotify), so that a dump does not search the disk for them. */

import type { LiveContainer } from "../../containers/live-container.ts";
import type { RunCommand } from "../../host/command.ts";

export interface WatchedPaths {
  /** Writes the paths into CRIU's work directory; nothing where no process watches files. */
  note(container: Pick<LiveContainer, "pid" | "cgroup">, work: string): Promise<void>;
}

/** Thousands of watches take less than a second. */
const LIMIT_MS = 20_000;

/** @param program path of `svc-watch-paths` */
export function hostWatchedPaths(run: RunCommand, program: () => Promise<string>): WatchedPaths {
  let known: Promise<string> | undefined;
  return {
    async note({ pid, cgroup }, work) {
      known ??= program().catch((error: unknown) => {
        known = undefined;
        throw error;
      });
      const input = cgroup.processes().join("\n");
      await run(await known, [work, String(pid)], { input, timeoutMs: LIMIT_MS });
    },
  };
}
