/** A cluster for pauses and resumes, and a way to hold work on its node. */

import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { gateway } from "../../../support/runner/promises.ts";

/**
 * A cluster with the ordinary limits of pauses and resumes, because a busy machine answers late: a test that waits for a limit
 * restarts it with a short one.
 */
export function pausingCluster(): Promise<Cluster> {
  return startCluster({ config: { orphanGraceMs: 100 } });
}

/**
 * Returns when requests that were sent before are inside, as far as requests say so: ten more, one after the other, were answered
 * meanwhile. A pause of fixed length is too short on a slow machine.
 */
export async function arrived(cluster: Cluster): Promise<void> {
  for (let count = 0; count < 10; count++) await cluster.ask("GET", "/v2/sandboxes");
}

/**
 * Delays work on the node: the work awaits `held()`, which resolves a moment after the returned function is called, so that
 * further requests can join.
 */
export function hold(cluster: Cluster, set: (held: () => Promise<void>) => void): () => Promise<void> {
  const opened = gateway();
  const inside = gateway();
  set(() => {
    inside.resolve();
    return opened.promise;
  });
  return async () => {
    await inside.promise;
    await arrived(cluster);
    opened.resolve();
  };
}
