/** A drain whose orchestrator is killed while it pauses a sandbox: another one goes on with it, and the edges of both let requests wait. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Drain } from "../../../../shared/api/nodes/drains.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { NODE_KEY } from "../../../support/cluster/cluster.ts";
import { type Pair, startPair } from "../../../support/cluster/pair.ts";
import { startApartEdge } from "../../../support/edges/apart-edge.ts";
import { able } from "../../../support/fakes/fake-machine.ts";
import { gateway } from "../../../support/runner/promises.ts";

const SOON = { timeout: 40_000 };
const log = createLog({ component: "test", level: "silent" });

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ agent: { facts: { capabilities: { ...able, peers: true } } } });
}, 180_000);
afterAll(() => pair.stop(), 60_000);

async function setStatus(nodeId: string, status: "ready" | "draining"): Promise<void> {
  const answer = await pair.admin(1, "POST", `/nodes/${nodeId}`, { status });
  expect(answer.status, answer.text).toBe(204);
}

test("a drain whose orchestrator is killed during the pause is finished by the next one, and no request is told that the sandbox is gone", async () => {
  const [home, other] = pair.agents;
  if (home === undefined || other === undefined) throw new Error("the pair has too few nodes");
  const statuses = async () => {
    const { body } = await pair.admin(0, "GET", "/nodes");
    return (body as { status: string }[]).map(({ status }) => status);
  };
  await expect.poll(statuses, SOON).toEqual(["ready", "ready"]);
  await setStatus(other.nodeId, "draining");
  const made = await pair.ask(0, "POST", "/v2/sandboxes", { templateID: "base", timeout: 600 });
  expect(made.status, made.text).toBe(201);
  const { sandboxID } = made.body as { sandboxID: string };
  expect(home.live.size).toBe(1);
  await setStatus(other.nodeId, "ready");
  home.onOffer = () => ({
    ticket: "f".repeat(64),
    projectId: "project",
    ref: `${"a".repeat(64)}.1`,
    doneBytes: 1,
    totalBytes: 1,
  });
  other.onFetch = ({ snapshotId }) => {
    const snapshot = home.snapshots.get(snapshotId);
    if (snapshot !== undefined) other.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 1, totalBytes: 1 };
  };
  const pausing = gateway();
  const asked: string[] = [];
  home.onPause = async ({ snapshotId }, take) => {
    asked.push(snapshotId);
    await pausing.promise;
    if (!home.snapshots.has(snapshotId)) take();
  };
  const edges = await Promise.all(
    pair.orchestrators.map(({ url }) => startApartEdge({ orchestratorUrl: url, nodeKey: NODE_KEY, log })),
  );
  onTestFinished(async () => void (await Promise.all(edges.map((edge) => edge.stop()))));
  const drain = await pair.admin(0, "POST", `/nodes/${home.nodeId}/drain`, {});
  expect(drain.status, drain.text).toBe(202);
  const moved = async () => {
    const { body } = await pair.admin(1, "GET", `/nodes/${home.nodeId}/drain`);
    return (body as Drain).sandboxes.find((each) => each.sandboxID === sandboxID);
  };
  // Several times, when an orchestrator stood still for as long as its lease.
  await expect.poll(() => asked.length, SOON).toBeGreaterThan(0);
  const before = asked.length;
  // Whichever of them works on it. The first one may go on with it while the second one is killed.
  for (const orchestrator of pair.orchestrators) await orchestrator.killAndStart();
  await expect.poll(() => asked.length, SOON).toBeGreaterThan(before);
  expect((await moved())?.state).toBe("moving");
  const headers = { "svc-sandbox-id": sandboxID, "svc-sandbox-port": "1" };
  const answers = edges.map(async ({ url }) => (await fetch(url, { headers })).text());
  // Long enough for a round of the drain.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect((await moved())?.state).toBe("moving");
  pausing.resolve();
  await expect.poll(moved, SOON).toMatchObject({ state: "moved", toNodeID: other.nodeId });
  for (const answer of answers) expect(await answer).not.toMatch(/not found|is paused|transitioning/);
  expect(other.live.size).toBe(1);
});
