/** The dependencies that `app.ts` passes to every folder's constructor, besides the parts of other folders. */

import type { Log } from "../shared/program/log.ts";
import type { Seal } from "../shared/program/seal.ts";
import type { Teardown } from "../shared/program/teardown.ts";
import type { Background } from "./background.ts";
import type { OrchestratorConfig } from "./config.ts";

export interface OrchestratorDeps {
  readonly log: Log;
  readonly now: () => number;
  /** A random number in [0, 1). */
  readonly random: () => number;
  /** Id of this machine (see `NodeFacts.machineId`): the edge dials sandboxes of nodes on this machine directly. */
  readonly machineId: string | undefined;
}

export interface Base extends OrchestratorDeps {
  readonly config: OrchestratorConfig;
  readonly sealing: Seal;
  readonly background: Background;
  readonly teardown: Teardown;
}
