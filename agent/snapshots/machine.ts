/** What snapshots use of their machine: what sandboxes use, and the means to store memory. */

import type { Blobs } from "../blobs/host-blobs.ts";
import type { SandboxMachine } from "../sandboxes/machine.ts";
import type { Memory } from "./take/host-memory.ts";

export interface SnapshotMachine extends SandboxMachine {
  readonly memory: Memory;
  readonly blobs: Blobs;
}
