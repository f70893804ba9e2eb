/** What stores the memory of this machine's containers and puts it back: CRIU, its files, and the connections in them. */

import { join } from "node:path";
import type { AgentConfig } from "../../config.ts";
import { type RunCommand, runCommand } from "../../host/command.ts";
import { nativeProgram } from "../../host/native-program.ts";
import type { Plan } from "../../network/addresses.ts";
import { type Connections, hostConnections } from "../connections/connections.ts";
import { type Criu, hostCriu } from "../criu/criu.ts";
import { hostWatchedPaths, type WatchedPaths } from "../criu/watched-paths.ts";
import { type SnapshotFiles, snapshotFiles } from "../store/files.ts";

export interface Memory {
  readonly criu: Criu;
  readonly watchedPaths: WatchedPaths;
  readonly files: SnapshotFiles;
  readonly connections: Connections;
  /** For tests: the time limit of a restore. */
  readonly restoreLimitMs?: number | undefined;
}

/** @param run for what a start or a frozen sandbox waits for */
export function hostMemory({ stateDir, runDir }: AgentConfig, plan: Plan, run: RunCommand): Memory {
  return {
    criu: hostCriu(run),
    watchedPaths: hostWatchedPaths(run, () =>
      nativeProgram(runCommand, "snapshots/criu/svc-watch-paths", runDir, ["watch-paths", "socket-names"]),
    ),
    files: snapshotFiles(join(stateDir, "snapshots")),
    connections: hostConnections(plan, run),
  };
}
