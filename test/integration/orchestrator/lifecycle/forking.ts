/** A cluster with a short time limit for checkpoints. */

import { type Cluster, type ClusterOptions, startCluster } from "../../../support/cluster/cluster.ts";

export function forkingCluster(more: Pick<ClusterOptions, "agent"> = {}): Promise<Cluster> {
  return startCluster({
    ...more,
    config: { patienceMs: 300, snapshotTimeoutMs: 1_000, orphanGraceMs: 100, maxProjectSandboxes: 20 },
  });
}
