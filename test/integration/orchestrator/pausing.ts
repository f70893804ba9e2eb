/** A cluster with short time limits for pauses and resumes, and a way to hold work on its node. */

import { type Cluster, startCluster } from "../../support/fakes/cluster.ts";
import { gateway } from "../../support/runner/promises.ts";

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
 * Holds work on the node: the work awaits `held()`, which resolves after the returned function is called, with some time for
 * joiners.
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
    // This is long enough for requests that were sent before.
    await new Promise((resolve) => setTimeout(resolve, 100));
    opened.resolve();
  };
}
