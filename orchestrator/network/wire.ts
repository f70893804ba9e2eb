/** Constructs the parts that change and show the network options of sandboxes. */

import type { Base } from "../app-parts.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Limits } from "../projects/limits.ts";
import type { Refusals } from "../projects/refusals.ts";
import type { History } from "../sandboxes/history.ts";
import type { Transitions } from "../sandboxes/lifecycle/transitions.ts";
import type { NodeData } from "../sandboxes/node-data.ts";
import type { Store } from "../store/store.ts";
import { createNetworkHandlers } from "./handlers.ts";
import { readAllowed } from "./proxy.ts";
import { createNetworkUpdating, type NetworkUpdatingDeps } from "./updating.ts";

interface CreateNetworkDeps extends Pick<NetworkUpdatingDeps, "placeholders" | "tokenNames"> {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly transitions: Transitions;
  readonly history: History;
  readonly nodeData: NodeData;
  readonly limits: Limits;
  readonly refusals: Refusals;
}

export function createNetwork({ config, sealing, now, random, log }: Base, used: CreateNetworkDeps) {
  const { patienceMs, networkTimeoutMs } = config;
  const updating = createNetworkUpdating({ ...used, sealing, now, random, log, patienceMs, networkTimeoutMs });
  const proxyRanges = readAllowed(config.egressProxyAllow);
  return { updating, proxyRanges, handlers: createNetworkHandlers({ ...used, proxyRanges, updating }) };
}
