/** Constructs the handlers of sandboxes: of their lives, of what they tell, and of their network. */

import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import { readAllowed } from "../network-policy/proxy.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Pools } from "../nodes/warm-pools.ts";
import type { PlaceholderCheck } from "../secrets/placeholder-check.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import type { Spawns } from "../templates/usage.ts";
import type { ResolveMounts } from "../volumes/mounts.ts";
import { createSandboxHandlers } from "./handlers.ts";
import { createNetworkHandlers } from "./network-handlers.ts";
import { createObservationHandlers } from "./observation.ts";
import { createSandboxStateHandlers } from "./state-handlers.ts";

interface SandboxHandlersDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
  readonly placeholders: PlaceholderCheck;
  readonly templates: TemplateNames;
  readonly pools: Pick<Pools, "used">;
  readonly spawns: Pick<Spawns, "count">;
  readonly resolveMounts: ResolveMounts;
  /** Base domain of sandboxes. */
  readonly domain: string;
}

export function createSandboxes(base: Base, { lifecycle, callers, ...parts }: SandboxHandlersDeps) {
  const { config, ...common } = base;
  const { store, nodes } = parts;
  const { log } = common;
  const { history, nodeData, networks } = lifecycle;
  const proxyRanges = readAllowed(config.egressProxyAllow);
  const served = { ...common, ...lifecycle, ...callers, ...parts, proxyRanges };
  return {
    sandboxes: {
      ...createSandboxHandlers(served),
      ...createObservationHandlers({ store, nodes, history, nodeData, log }),
    },
    sandboxStates: createSandboxStateHandlers(served),
    sandboxNetworks: createNetworkHandlers({ ...served, updating: networks }),
  };
}
