/** A cluster whose limits of a pause and a resume end soon, and work on its node that a test holds. */

import { type Cluster, startCluster } from "../../support/fakes/cluster.ts";
import { gateway } from "../../support/runner/promises.ts";

/** A silent node is noticed within a test. */
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

/** Work on the node that waits: `held` in it resolves once the returned function is called, with some time for joiners. */
export function hold(set: (held: () => Promise<void>) => void): () => Promise<void> {
  const opened = gateway();
  const inside = gateway();
  set(() => {
    inside.resolve();
    return opened.promise;
  });
  return async () => {
    await inside.promise;
    // Long enough for requests that were sent before.
    await new Promise((resolve) => setTimeout(resolve, 100));
    opened.resolve();
  };
}
