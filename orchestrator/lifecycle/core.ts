/** What every change of a sandbox works with. */

import type { Log } from "../../shared/program/log.ts";
import type { Background } from "../base/background.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { Store } from "../store/store.ts";
import type { SnapshotRemover } from "./snapshots/snapshot-removal.ts";
import type { Transitions } from "./transitions.ts";

export interface Core {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: RoutingTable;
  readonly transitions: Transitions;
  readonly snapshots: SnapshotRemover;
  readonly background: Background;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
}
