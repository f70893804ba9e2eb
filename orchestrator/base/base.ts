/** The dependencies that `app.ts` passes to every folder's constructor, besides the parts of other folders. */

import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { Feed } from "../store/changes/feed.ts";
import type { Leases, Rounds } from "../store/membership/leases.ts";
import type { Background } from "./background.ts";
import type { Clock } from "./clock.ts";
import type { Keyring } from "./keys/keyring.ts";

export interface OrchestratorDeps {
  readonly log: Log;
  readonly now: () => number;
  /** A random number in [0, 1). */
  readonly random: () => number;
  /** Id of this machine (see `NodeFacts.machineId`): the edge dials sandboxes of nodes on this machine directly. */
  readonly machineId: string | undefined;
  /** Environment of the programs that the orchestrator starts, from which it takes out its own settings. */
  readonly environment?: NodeJS.ProcessEnv;
}

export interface Base extends OrchestratorDeps, Keyring {
  readonly config: OrchestratorConfig;
  readonly background: Background;
  readonly clock: Pick<Clock, "follow">;
  readonly teardown: Teardown;
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  /** As `loop`, for rounds that one orchestrator at a time does. */
  readonly rounds: Rounds;
  readonly leases: Leases;
  /** What other orchestrators have changed. */
  readonly feed: Feed;
}
