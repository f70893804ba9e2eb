/** What builds use of their machine: what snapshots use, and tools of their own. */

import type { SnapshotMachine } from "../snapshots/machine.ts";
import type { BuildTools } from "./tools.ts";

export interface BuildMachine extends SnapshotMachine {
  readonly tools: BuildTools;
}
