/** What the first half of `app.ts` builds for the second. */

import type { Log } from "../shared/program/log.ts";
import type { Seal } from "../shared/program/seal.ts";
import type { Metrics } from "./api/prometheus.ts";
import type { createBackground } from "./background.ts";
import type { OrchestratorConfig } from "./config.ts";
import type { Edge } from "./edge/edge.ts";
import type { Nodes } from "./nodes/nodes.ts";
import type { createRoutes } from "./routing-table.ts";
import type { Expiry } from "./sandboxes/lifecycle/expiry.ts";
import type { createEnding } from "./sandboxes/lifecycle/kill.ts";
import type { createTransitions } from "./sandboxes/lifecycle/transitions.ts";
import type { Sleep } from "./sandboxes/lifecycle/wire.ts";
import type { SnapshotRemover } from "./snapshots/removal.ts";
import type { Project } from "./store/projects.ts";
import type { Store } from "./store/store.ts";

export interface OrchestratorDeps {
  readonly log: Log;
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** Id of this machine (see `NodeFacts.machineId`): the edge dials sandboxes of nodes on this machine directly. */
  readonly machineId: string | undefined;
}

/** What the first half has built. */
export interface Parts {
  readonly config: OrchestratorConfig;
  readonly deps: OrchestratorDeps;
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: ReturnType<typeof createRoutes>;
  readonly ending: ReturnType<typeof createEnding>;
  readonly transitions: ReturnType<typeof createTransitions>;
  readonly background: ReturnType<typeof createBackground>;
  readonly base: Awaited<ReturnType<Store["templates"]["seed"]>>;
  readonly metrics: Metrics;
  readonly edge: Edge;
  readonly expiry: Expiry;
  readonly limits: Limits;
  readonly sealing: Seal;
  readonly sleep: Sleep;
  readonly snapshots: SnapshotRemover;
}

export interface Limits {
  readonly maxHours: (project: Project) => number;
  readonly maxSandboxes: (project: Project) => number;
}
