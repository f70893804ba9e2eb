/** A paused sandbox is killed while its node does not answer: its state is deleted once the node answers, and is not held. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

let cluster: Cluster;
beforeEach(async () => {
  // Reports of the node remove nothing: it is to be asked again.
  cluster = await startCluster({ config: { orphanGraceMs: 600_000, reconcileEveryMs: 50 } });
});
afterEach(() => cluster.stop());

const { create } = sandboxesOn(() => cluster);

async function killedAway(): Promise<string> {
  const { sandboxID: id } = await create();
  await cluster.ask("POST", `/sandboxes/${id}/pause`);
  const [snapshotId = ""] = [...cluster.agent.snapshots.keys()];
  cluster.agent.onRemove = () => {
    throw new Error("the node is away");
  };
  expect((await cluster.ask("DELETE", `/sandboxes/${id}`)).status).toBe(204);
  expect([...cluster.agent.snapshots.keys()]).toEqual([snapshotId]);
  return snapshotId;
}

test("the orchestrator that was asked to kill it asks the node again", async () => {
  const snapshotId = await killedAway();
  let asked = 0;
  cluster.agent.onRemove = () => {
    if (++asked < 3) throw new Error("the node is away");
  };
  await expect.poll(() => cluster.agent.removed).toEqual([snapshotId]);
  expect(asked).toBe(3);
});

test("after a restart of the orchestrator the node's report shows what is left", async () => {
  const snapshotId = await killedAway();
  await cluster.restart({ orphanGraceMs: 300 }, () => {
    cluster.agent.onRemove = () => undefined;
  });
  await expect.poll(async () => (await cluster.agent.beat()) && cluster.agent.removed).toEqual([snapshotId]);
  expect(cluster.agent.holds).toEqual([]);
});
