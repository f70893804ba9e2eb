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
import { createCreating } from "./create/create.ts";
import { createSandboxHandlers } from "./handlers.ts";
import { createNetworkHandlers } from "./network-handlers.ts";
import { createObservationHandlers } from "./observation.ts";
import { createSandboxStateHandlers } from "./state-handlers.ts";

interface SandboxesDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
  readonly placeholders: PlaceholderCheck;
  readonly templates: TemplateNames;
  readonly pools: Pools;
  readonly spawns: Spawns;
  readonly resolveMounts: ResolveMounts;
  /** Base domain of sandboxes. */
  readonly domain: string;
}

export function createSandboxes(base: Base, deps: SandboxesDeps) {
  const { config, background, seeds, sealing, now, log } = base;
  const { store, nodes, lifecycle, placeholders, templates, pools, spawns, resolveMounts, domain } = deps;
  const { launch, ending, lifetime, connecting, history, nodeData, pausing, forking, networks } = lifecycle;
  const { limits, refusals } = deps.callers;
  const proxyRanges = readAllowed(config.egressProxyAllow);
  const create = createCreating({
    limits,
    refusals,
    placeholders,
    resolveMounts,
    templates,
    seeds,
    sealing,
    launch,
    pools,
    spawns,
    ending,
    background,
    now,
    proxyRanges,
  });
  const view = { seeds, domain };
  const handlers = createSandboxHandlers({
    store,
    create,
    ending,
    lifetime,
    connecting,
    history,
    templates,
    limits,
    view,
  });
  const observation = createObservationHandlers({ store, nodes, history, nodeData, log });
  return {
    sandboxes: { ...handlers, ...observation },
    sandboxStates: createSandboxStateHandlers({ pausing, connecting, forking, ending, limits, background, view }),
    sandboxNetworks: createNetworkHandlers({ history, nodeData, nodes, networks, limits, refusals, proxyRanges }),
  };
}
