/** Constructs the removal of snapshots from nodes, and later the handlers that make and list them. */

import type { Base } from "../app-parts.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { createSnapshotHandlers, type SnapshotsDeps } from "./handlers.ts";
import { createSnapshotRemover } from "./removal.ts";

export function createSnapshots({ config, background, log }: Base, nodes: Nodes) {
  return {
    remover: createSnapshotRemover({ nodes, background, log, timeoutMs: config.stopTimeoutMs }),
    handlers: (deps: SnapshotsDeps) => createSnapshotHandlers(deps),
  };
}
