/** Clients' view of sandboxes that their node holds because its disk is short. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
beforeEach(async () => {
  // The node reports when a test says so, and is not silent for too long, however slow the machine is.
  cluster = await startCluster({ agent: { heartbeatMs: 0 }, config: { nodeTimeoutMs: 600_000, nodeLostMs: 600_000 } });
});
afterEach(() => cluster.stop());

const create = () => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });

async function running(): Promise<{ id: string; hold: (held: boolean) => Promise<void> }> {
  const { body } = await create();
  const id = (body as { sandboxID: string }).sandboxID;
  return {
    id,
    async hold(held) {
      for (const one of cluster.agent.live.values()) if (one.body.sandboxId === id) one.held = held;
      await cluster.agent.beat();
    },
  };
}

const events = async (id: string) => {
  const { body } = await cluster.ask("GET", `/events/sandboxes/${id}?orderAsc=true`);
  return (body as { type: string }[]).map(({ type }) => type.replace("sandbox.lifecycle.", ""));
};
/** Whether the edge answers a visitor that the sandbox is held; otherwise the fake node answers. */
const stands = async (id: string) =>
  (await fetch(cluster.edgeUrl, { headers: { "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "1" } })).status === 507;

test("hold and release each write one event, and visitors are answered at once", async () => {
  const { id, hold } = await running();
  expect(await stands(id)).toBe(false);
  await hold(true);
  await hold(true);
  expect(await stands(id)).toBe(true);
  await hold(false);
  await hold(false);
  expect(await stands(id)).toBe(false);
  expect(await events(id)).toEqual(["created", "held", "released"]);
});

test("a restarted orchestrator writes no event twice and misses none", async () => {
  const [first, second] = [await running(), await running()];
  await first.hold(true);
  await second.hold(true);
  await cluster.restart();
  await first.hold(true);
  expect([await stands(first.id), await stands(second.id)]).toEqual([true, true]);
  await cluster.restart({}, () => {
    for (const one of cluster.agent.live.values()) if (one.body.sandboxId === first.id) one.held = false;
  });
  await cluster.agent.beat();
  expect([await stands(first.id), await stands(second.id)]).toEqual([false, true]);
  expect(await events(first.id)).toEqual(["created", "held", "released"]);
  expect(await events(second.id)).toEqual(["created", "held"]);
});

test("a sandbox that its node ended because the disk was full has that reason in its record", async () => {
  const { id } = await running();
  const executionId = [...cluster.agent.live.keys()][0] ?? "";
  await cluster.agent.reportExit(executionId, "disk_full");
  const told = async () => (await cluster.ask("GET", `/events/sandboxes/${id}`)).body;
  await expect.poll(told).toMatchObject([{ type: "sandbox.lifecycle.killed", eventData: { reason: "disk_full" } }, {}]);
});

test("a start that every node refuses for want of disk is answered 507 in the node's words", async () => {
  cluster.agent.onStart = () => {
    throw new AppError("no_space", "the node's disk has 1 MiB free");
  };
  const { status, body } = await create();
  expect(status).toBe(507);
  expect(body).toMatchObject({
    error_code: "no_space",
    message: "Failed to place sandbox: the node's disk has 1 MiB free",
  });
});
