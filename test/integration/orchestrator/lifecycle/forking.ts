/** A cluster with a short time limit for checkpoints. */

import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

export function forkingCluster(): Promise<Cluster> {
  return startCluster({
    config: { patienceMs: 300, snapshotTimeoutMs: 1_000, orphanGraceMs: 100, maxProjectSandboxes: 20 },
  });
}
