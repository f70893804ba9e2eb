/** A cluster with short time limits for pauses and resumes, and a way to hold work on its node. */

import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { gateway } from "../../../support/runner/promises.ts";

/** A cluster that notices a silent node within the time of a test. */
export function impatientCluster(): Promise<Cluster> {
  return startCluster({
    config: {
      patienceMs: 400,
      snapshotTimeoutMs: 2_000,
      resumeTimeoutMs: 1_000,
      orphanGraceMs: 100,
      stopTimeoutMs: 500,
    },
  });
}

/**
 * Delays work on the node: the work awaits `held()`, which resolves a moment after the returned function is called, so that
 * further requests can join.
 */
export function hold(set: (held: () => Promise<void>) => void): () => Promise<void> {
  const opened = gateway();
  const inside = gateway();
  set(() => {
    inside.resolve();
    return opened.promise;
  });
  return async () => {
    await inside.promise;
    // Requests that were sent before have joined by then.
    await new Promise((resolve) => setTimeout(resolve, 100));
    opened.resolve();
  };
}
