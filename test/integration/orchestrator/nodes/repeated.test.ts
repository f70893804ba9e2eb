/**
 * Each report of a node comes to the orchestrator three times, two of them at once: what it tells happens once. So it is when an
 * answer was lost, and the node sends its report again.
 */

import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { type ExitReport, nodeApi } from "../../../../shared/agent-api/routes.ts";
import { connect } from "../../../../shared/http/client.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { clusterProblems } from "../../../support/cluster/invariants.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { Started } from "../../../support/fakes/fake-agent-shapes.ts";
import { reportOf } from "./reporting.ts";

const SOON = { timeout: 30_000 };

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agent: { heartbeatMs: 0 }, config: { nodeTimeoutMs: 600_000, nodeLostMs: 600_000 } });
});
afterAll(() => cluster.stop());
afterEach(() => expect.poll(() => clusterProblems(cluster), SOON).toEqual([]));

const { create, eventsOf, read } = sandboxesOn(() => cluster);

/** The node's side of the contract, without the fake agent's own repetitions. */
function node() {
  const { agent } = cluster;
  const connection = connect(nodeApi, {
    url: cluster.url,
    name: "orchestrator",
    headers: { authorization: `Bearer ${agent.tokens.nodeToken}` },
  });
  onTestFinished(() => connection.close());
  return connection.call;
}

async function thrice<T>(send: () => Promise<T>): Promise<readonly T[]> {
  return [...(await Promise.all([send(), send()])), await send()];
}

async function started(): Promise<Started> {
  const { sandboxID } = await create();
  const found = [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === sandboxID);
  if (found === undefined) throw new Error("the sandbox does not run on the node");
  return found;
}

const exitOf = ({ executionId, body }: Started): ExitReport => ({
  executionId,
  sandboxId: body.sandboxId,
  reason: "exited",
  exitCode: 3,
  at: Date.now(),
});

test("an exit ends its sandbox with one event, by a report of exits and by a heartbeat", async () => {
  for (const send of [
    (exits: ExitReport[]) => node().reportExits({ params: { nodeId: cluster.agent.nodeId }, body: { exits } }),
    async (exits: ExitReport[]) => node().heartbeat({ body: { ...(await reportOf(cluster)), exits } }),
  ]) {
    const ends = await started();
    cluster.agent.live.delete(ends.executionId);
    await thrice<unknown>(() => send([exitOf(ends)]));
    expect(await eventsOf(ends.body.sandboxId)).toEqual(["created", "killed"]);
    const ended = await cluster.ask("GET", `/sandboxes/${ends.body.sandboxId}?ended=true`);
    expect(ended.body).toMatchObject({ endReason: "exited" });
  }
});

test("a pause by the node itself is one pause, and its sandbox resumes once", async () => {
  const one = await started();
  cluster.agent.pauseByItself(one.executionId, randomUUID());
  const body = await reportOf(cluster);
  await thrice(() => node().heartbeat({ body }));
  await expect.poll(() => eventsOf(one.body.sandboxId), SOON).toEqual(["created", "paused"]);
  expect((await read(one.body.sandboxId)).state).toBe("paused");
});

test("a heartbeat registers one node and changes no sandbox, and each answer orders the same", async () => {
  const one = await started();
  const body = await reportOf(cluster);
  // How far the database has come may be more by the last one.
  const orders = async () => ({ ...(await node().heartbeat({ body })), store: undefined });
  const [first, ...others] = await thrice(orders);
  for (const other of others) expect(other).toEqual(first);
  expect(first).toMatchObject({ stop: [], endAt: {}, deleteSnapshots: [] });
  expect(await eventsOf(one.body.sandboxId)).toEqual(["created"]);
});
