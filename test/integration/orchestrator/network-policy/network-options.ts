/** A cluster for tests of network options, and the options of a sandbox as its node and the database have them. */

import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import type { EgressPolicy } from "../../../../shared/policy/egress-policy.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

export const ALL = "0.0.0.0/0";
export const PROXY = { address: "198.51.100.1:1080", username: "me" };

/** Starts one cluster for all tests of a file; its node accepts every policy until a test says otherwise. */
export function sharedNetworkCluster(): () => Cluster {
  // Changes of one sandbox wait for each other for the longer of the two limits.
  const config = { patienceMs: 300, networkTimeoutMs: 60_000, reconcileEveryMs: 50, egressProxyAllow: "10.9.0.0/16" };
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ config });
  });
  beforeEach(() => {
    cluster.agent.onEgress = (_policy, set) => set();
  });
  afterAll(() => cluster.stop());
  return () => cluster;
}

export interface NetworkOptions {
  /** Replaces the sandbox's network options. */
  readonly put: (id: string, body: object) => Promise<Answer>;
  /** Reads from the record which change is under way. */
  readonly changeOf: (id: string) => Promise<unknown>;
  /** The policy of the running execution; undefined when nothing runs. */
  readonly policyOf: (id: string) => EgressPolicy | undefined;
  readonly executionOf: (id: string) => string;
  readonly pauseAndResume: (id: string) => Promise<void>;
}

export function networkOn(cluster: () => Cluster): NetworkOptions {
  const { pause, connect } = sandboxesOn(cluster);
  return {
    put: (id, body) => cluster().ask("PUT", `/sandboxes/${id}/network`, { body }),
    async changeOf(id) {
      const [found] = await cluster().database.query("select network_change from sandboxes where id = ?", id);
      return found?.["network_change"];
    },
    policyOf: (id) => [...cluster().agent.live.values()].find(({ body }) => body.sandboxId === id)?.egress,
    executionOf(id) {
      const [executionId = ""] = [...cluster().agent.live].find(([, { body }]) => body.sandboxId === id) ?? [];
      return executionId;
    },
    async pauseAndResume(id) {
      expect((await pause(id, {})).status).toBe(204);
      expect((await connect(id)).status).toBe(201);
    },
  };
}
