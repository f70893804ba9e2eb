/** What every change of a sandbox works with. */

import type { Log } from "../../shared/program/log.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import type { Limits } from "../access/limits.ts";
import type { Refusals } from "../access/refusals.ts";
import type { Background } from "../base/background.ts";
import type { Seeds } from "../base/keys/seeds.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { StartTurns } from "../nodes/start-turns.ts";
import type { Store } from "../store/store.ts";
import type { Deadlines } from "./ending/deadlines.ts";
import type { History } from "./history.ts";
import type { SnapshotRemover } from "./snapshots/snapshot-removal.ts";
import type { Transitions } from "./transitions.ts";

/** Of requests to nodes, of waits for a place, and (`patienceMs`) how long a busy or silent node is asked again. */
type Timeouts = Pick<
  OrchestratorConfig,
  | "startTimeoutMs"
  | "resumeTimeoutMs"
  | "autoResumeTimeoutMs"
  | "placementTimeoutMs"
  | "startQueueMs"
  | "snapshotTimeoutMs"
  | "stopTimeoutMs"
  | "networkTimeoutMs"
  | "patienceMs"
>;

export interface Core {
  readonly store: Store;
  readonly nodes: Nodes;
  /** Every start on a node takes one. */
  readonly turns: StartTurns;
  readonly routes: RoutingTable;
  readonly transitions: Transitions;
  readonly snapshots: SnapshotRemover;
  readonly history: History;
  readonly deadlines: Deadlines;
  readonly limits: Limits;
  readonly refusals: Refusals;
  readonly sealing: Seal;
  readonly seeds: Seeds;
  readonly timeouts: Timeouts;
  readonly background: Background;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
}
