/** What every constructor of the agent's parts gets, beside the parts that were created before. */

import { EventEmitter } from "node:events";
import type { ExitReport } from "../../shared/agent-api/routes.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import { openPeering } from "../joining/open-peering.ts";
import { createOrchestrators, type Orchestrators } from "../joining/orchestrators.ts";
import type { Peering } from "../joining/peering.ts";
import { openState } from "../store/state.ts";
import type { Stores } from "../store/stores.ts";

export interface Base extends AgentDeps {
  readonly config: AgentConfig;
  readonly stores: Stores;
  readonly peering: Peering;
  readonly orchestrators: Orchestrators;
  readonly events: Events;
  readonly teardown: Teardown;
}

/** What a part announces to others that are created after it. Listeners run at once, in the order in which they came. */
type Events = EventEmitter<{
  /** The agent reports a change to the orchestrator soon. */
  changed: [];
  /** A sandbox has started or ended, or its end time has changed. */
  sandboxes: [];
  /** A sandbox has ended without a request, and its exit is recorded. */
  exited: [reason: ExitReport["reason"]];
  /** Docker answers again after an outage. */
  engineBack: [];
}>;

/** @throws when another agent uses the state directory */
export async function createBase(config: AgentConfig, deps: AgentDeps, teardown: Teardown): Promise<Base> {
  const { disks, network } = deps.machine;
  const stores = await openState(deps.state, () => disks.keepBallast("now"), teardown);
  const peering = await openPeering(config, deps);
  teardown.add("firewall shell", () => network.firewall.stop());
  const orchestrators = createOrchestrators(config.orchestratorUrl, deps.log);
  return { ...deps, config, stores, peering, orchestrators, events: new EventEmitter(), teardown };
}
