/** Constructs the metrics, which read the states of sandboxes, builds, volumes, deliveries and nodes when they are asked for. */

import type { Base } from "../base/base.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Store } from "../store/store.ts";
import { createMetrics, type Metrics } from "./prometheus.ts";

interface MetricsSources {
  readonly store: Store;
  readonly nodes: Nodes;
}

export function createPlatformMetrics({ now }: Base, { store, nodes }: MetricsSources): Metrics {
  return createMetrics({
    sandboxesByState: () => store.sandboxes.countByState(),
    buildsByStatus: () => store.builds.countByStatus(),
    volumesByState: () => store.volumes.countByState(),
    pendingDeliveries: () => store.deliveries.countPending(),
    nodes: () => nodes.list(),
    auditSeq: async () => (await store.audit.head()).seq,
    now,
  });
}
