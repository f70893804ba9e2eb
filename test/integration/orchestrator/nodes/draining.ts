/** Two nodes for each test, of which the first is drained: the second one takes sandboxes once a test has made its own. */

import { afterEach, beforeEach, expect } from "vitest";
import type { Drain } from "../../../../shared/api/nodes/drains.ts";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { type Sandboxes, sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

export const SOON = { timeout: 30_000 };
export const TICKET = "f".repeat(64);
export const REF = `${"a".repeat(64)}.1`;
export const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

interface Drains extends Sandboxes {
  readonly cluster: Cluster;
  /** The node that is drained. */
  readonly home: FakeAgent;
  readonly other: FakeAgent;
  readonly setStatus: (node: FakeAgent, status: "ready" | "standby" | "draining") => Promise<void>;
  /** A sandbox on the first node. The other one takes sandboxes from then on. */
  readonly onHome: (body?: object) => Promise<Sandbox>;
  readonly drain: (body?: object) => Promise<Drain>;
  readonly progress: () => Promise<Drain>;
  readonly of: (sandbox: Pick<Sandbox, "sandboxID">) => Promise<Drain["sandboxes"][number] | undefined>;
}

/** The node gets at once what the other one has stored. */
export function fetches(node: FakeAgent, from: FakeAgent): void {
  from.onOffer = () => ({ ticket: TICKET, projectId: "project", ref: REF, doneBytes: 1, totalBytes: 1 });
  node.onFetch = ({ snapshotId }) => {
    const snapshot = from.snapshots.get(snapshotId);
    if (snapshot !== undefined) node.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 1, totalBytes: 1 };
  };
}

export function drainsForEach(): Drains {
  let cluster: Cluster;
  let home: FakeAgent;
  let other: FakeAgent;
  beforeEach(async () => {
    cluster = await startCluster({
      agents: 2,
      agent: { heartbeatMs: 0, facts: { capabilities: { ...able, peers: true } } },
      config: { nodeTimeoutMs: 600_000, resumeTimeoutMs: 3_000, patienceMs: 400 },
    });
    const [first, second] = cluster.agents;
    if (first === undefined || second === undefined) throw new Error("the cluster has too few nodes");
    [home, other] = [first, second];
    await drains.setStatus(other, "standby");
    fetches(other, home);
  });
  afterEach(() => cluster.stop());

  const drains: Drains = {
    ...sandboxesOn(() => cluster),
    get cluster() {
      return cluster;
    },
    get home() {
      return home;
    },
    get other() {
      return other;
    },
    async setStatus({ nodeId }, status) {
      const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
      expect(answer.status, answer.text).toBe(204);
    },
    async onHome(body = {}) {
      const sandbox = await drains.create({ timeout: 600, ...body });
      await drains.setStatus(other, "ready");
      return sandbox;
    },
    async drain(body = {}) {
      const answer = await cluster.ask("POST", `/nodes/${home.nodeId}/drain`, { ...admin, body });
      expect(answer.status, answer.text).toBe(202);
      return answer.body as Drain;
    },
    progress: async () => (await cluster.ask("GET", `/nodes/${home.nodeId}/drain`, admin)).body as Drain,
    of: async ({ sandboxID }) => (await drains.progress()).sandboxes.find((each) => each.sandboxID === sandboxID),
  };
  return drains;
}
