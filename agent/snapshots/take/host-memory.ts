/** What stores the memory of this machine's containers and puts it back: CRIU, its files, and the connections in them. */

import { join } from "node:path";
import type { AgentConfig } from "../../config.ts";
import { runCommand } from "../../host/command.ts";
import type { Plan } from "../../network/addresses.ts";
import { type Connections, hostConnections } from "../connections/connections.ts";
import { type Criu, hostCriu } from "../criu/criu.ts";
import { type SnapshotFiles, snapshotFiles } from "../store/files.ts";

export interface Memory {
  readonly criu: Criu;
  readonly files: SnapshotFiles;
  readonly connections: Connections;
  /** For tests: the time limit of a restore. */
  readonly restoreLimitMs?: number | undefined;
}

export function hostMemory({ stateDir }: AgentConfig, plan: Plan): Memory {
  return {
    criu: hostCriu(runCommand),
    files: snapshotFiles(join(stateDir, "snapshots")),
    connections: hostConnections(plan, runCommand),
  };
}
