/** Constructs the handlers of sandboxes: of their lives, of what they tell, and of their network. */

import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import { readAllowed } from "../network-policy/proxy.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Store } from "../store/store.ts";
import { type CreatingParts, createCreating } from "./create/create.ts";
import { createSandboxHandlers } from "./handlers.ts";
import { createNetworkHandlers } from "./network-handlers.ts";
import { createObservationHandlers } from "./observation.ts";
import { createSandboxStateHandlers } from "./state-handlers.ts";
import { createTimed } from "./timed.ts";
import { createTotals } from "./totals.ts";

interface SandboxesDeps extends CreatingParts {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly metrics: Pick<Metrics, "phases">;
  /** Base domain of sandboxes. */
  readonly domain: string;
}

export function createSandboxes(base: Base, deps: SandboxesDeps) {
  const { config, background, seeds, log, now } = base;
  const { store, nodes, metrics, lifecycle, callers, templates } = deps;
  const proxyRanges = readAllowed(config.egressProxyAllow);
  const view = { seeds, domain: deps.domain };
  const creating = createCreating(base, deps);
  const timed = createTimed(config.serverTiming === "on", (op, parts) => metrics.phases(op, parts));
  const totals = createTotals({ count: (filter) => store.sandboxes.count(filter), now });
  return {
    sandboxes: {
      ...createSandboxHandlers({ store, nodes, lifecycle, callers, templates, creating, view, timed, totals }),
      ...createObservationHandlers({ store, nodes, lifecycle, log }),
    },
    sandboxStates: createSandboxStateHandlers({
      lifecycle,
      callers,
      templates,
      background,
      view,
      timed,
      drains: store.drains,
    }),
    sandboxNetworks: createNetworkHandlers({ nodes, lifecycle, callers, proxyRanges }),
  };
}
