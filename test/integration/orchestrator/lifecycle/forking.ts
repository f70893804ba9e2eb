/** A cluster for checkpoints, which removes what no record names soon. */

import { type Cluster, type ClusterOptions, startCluster } from "../../../support/cluster/cluster.ts";

export function forkingCluster(more: Pick<ClusterOptions, "agent"> = {}): Promise<Cluster> {
  return startCluster({
    ...more,
    config: { orphanGraceMs: 100, maxProjectSandboxes: 20 },
  });
}
