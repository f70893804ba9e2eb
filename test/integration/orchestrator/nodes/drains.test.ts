/** Drains through the API: what runs and what is paused goes to other nodes, which read it from the first. */

import { expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { admin, drainsForEach, REF, SOON, TICKET } from "./draining.ts";

const pair = drainsForEach();
const { create, pause, read, connect, eventsOf, routed, setStatus, onHome, drain, progress, of } = pair;
/** The snapshots that the other node was to fetch: on a busy machine a call may be made again, for the same one. */
const fetched = () => new Set(pair.other.fetches.map(({ snapshotId }) => snapshotId));

test("a running sandbox goes on on another node, which reads its memory and disk from the first, and does not lose time by the stall", async () => {
  const sandbox = await onHome();
  const before = await read(sandbox.sandboxID);
  expect(await drain()).toMatchObject({ nodeID: pair.home.nodeId, deadlineAt: null, running: "move", atOnce: 2 });
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({ state: "moved", was: "running", toNodeID: pair.other.nodeId });
  expect((await of(sandbox))?.stallMs).toBeGreaterThanOrEqual(0);
  expect((await progress()).state).toBe("done");
  expect([pair.home.live.size, pair.other.live.size]).toEqual([0, 1]);
  expect(pair.other.fetches[0]).toEqual({
    snapshotId: expect.any(String) as string,
    ref: REF,
    projectId: "project",
    memory: true,
    peer: { nodeId: pair.home.nodeId, url: pair.home.url, ticket: TICKET },
  });
  const after = await read(sandbox.sandboxID);
  expect(after.state).toBe("running");
  const later = Date.parse(after.endAt) - Date.parse(before.endAt);
  expect(later).toBeGreaterThanOrEqual(0);
  // Its start, and what is missing to a whole second.
  expect(later).toBeLessThanOrEqual(((await of(sandbox))?.stallMs ?? 0) + 1_000);
  expect((await eventsOf(sandbox.sandboxID)).slice(-2)).toEqual(["paused", "resumed"]);
});

test("requests for a sandbox on its way wait for it, although it does not resume by traffic", async () => {
  const sandbox = await onHome();
  const fetching = gateway();
  const fetch = pair.other.onFetch;
  pair.other.onFetch = async (request) => {
    await fetching.promise;
    return fetch(request);
  };
  await drain();
  await expect.poll(() => pair.other.fetches.length, SOON).toBeGreaterThan(0);
  const answer = routed(sandbox.sandboxID);
  fetching.resolve();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved" });
  expect(await answer).not.toContain("is paused");
  expect(await answer).not.toContain("not found");
  expect(fetched().size).toBe(1);
});

test("a sandbox that does not start at once on the other node is moved only when it runs there, and requests wait until then", async () => {
  const sandbox = await onHome();
  const starting = gateway();
  const failures = { left: 2 };
  pair.other.onStart = async (_start, run) => {
    if (failures.left-- > 0) throw new AppError("snapshot_failed", "the restore did not end within its limit");
    await starting.promise;
    run();
  };
  await drain();
  await expect.poll(() => failures.left, SOON).toBeLessThan(0);
  expect((await of(sandbox))?.state).toBe("moving");
  const answer = routed(sandbox.sandboxID);
  starting.resolve();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: pair.other.nodeId });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect(await answer).not.toContain("not found");
  expect((await of(sandbox))?.stallMs).toEqual(expect.any(Number));
});

test("a sandbox whose node has ended its offer, because the files had changed, is offered once more and moves at once", async () => {
  const sandbox = await onHome();
  const anew = "1".repeat(64);
  const offers = { count: 0 };
  pair.home.onOffer = () => {
    const ticket = offers.count++ === 0 ? TICKET : anew;
    return { ticket, projectId: "project", ref: REF, doneBytes: 1, totalBytes: 1 };
  };
  const fetch = pair.other.onFetch;
  pair.other.onFetch = (request) => {
    if (request.peer?.ticket === TICKET)
      throw new AppError("unavailable", "its disk has changed since it was described");
    return fetch(request);
  };
  await drain();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: pair.other.nodeId });
  // On a busy machine a call may be made again.
  expect([...new Set(pair.other.fetches.map(({ peer }) => peer?.ticket))]).toEqual([TICKET, anew]);
});

test("a paused sandbox goes to another node as it is, and the first one deletes its copy", async () => {
  const sandbox = await onHome();
  expect((await pause(sandbox.sandboxID)).status).toBe(204);
  const [snapshotId] = pair.home.snapshots.keys();
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({ state: "moved", was: "paused", toNodeID: pair.other.nodeId });
  expect((await read(sandbox.sandboxID)).state).toBe("paused");
  await expect.poll(() => pair.home.removed, SOON).toEqual([snapshotId]);
  expect((await connect(sandbox.sandboxID)).status).toBe(201);
  expect(pair.other.live.size).toBe(1);
});

test("what no other node can take runs on where it is, without a pause, and the progress says why", async () => {
  const sandbox = await create();
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({
      state: "stays",
      stallMs: null,
      reason: expect.stringContaining("no other node can take it") as string,
    });
  expect(pair.home.live.size).toBe(1);
  expect((await progress()).state).toBe("draining");
  expect(await eventsOf(sandbox.sandboxID)).toEqual(["created"]);
});

test("a sandbox whose memory fits no other node runs again on its own, after one stall", async () => {
  const sandbox = await onHome();
  pair.other.onFetch = () => {
    throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
  };
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({
      state: "stays",
      reason: expect.stringContaining("lacks avx512f") as string,
      stallMs: expect.any(Number) as number,
    });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect([pair.home.live.size, pair.other.live.size]).toEqual([1, 0]);
});

test("sandboxes that may finish run until the deadline, which ends them where the operator said so", async () => {
  const sandbox = await onHome();
  await drain({ running: "finish" });
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "waiting", reason: "it runs until its end" });
  // Asked again, the drain under way changes.
  const again = await drain({ running: "finish", deadlineSeconds: 1, atDeadline: "kill" });
  expect(again.begunAt).toBe((await progress()).begunAt);
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "killed" });
  expect((await progress()).state).toBe("done");
  // The event is written when the node has given everything back.
  await expect.poll(async () => (await eventsOf(sandbox.sandboxID)).at(-1), SOON).toBe("killed");
  const wrong = await pair.cluster.ask("POST", `/nodes/${pair.home.nodeId}/drain`, {
    ...admin,
    body: { atDeadline: "kill" },
  });
  expect(wrong.status).toBe(400);
});

test("a drain goes on after the orchestrator has ended between the pause and the start", async () => {
  const sandbox = await onHome();
  pair.other.onFetch = () => ({ here: false, doneBytes: 1, totalBytes: 2 });
  await drain();
  await expect.poll(() => pair.other.fetches.length, SOON).toBeGreaterThan(0);
  expect((await of(sandbox))?.state).toBe("moving");
  const stoodAt = Date.now();
  const fetched: FakeAgent["onFetch"] = ({ snapshotId }) => {
    const snapshot = pair.home.snapshots.get(snapshotId);
    if (snapshot !== undefined) pair.other.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 2, totalBytes: 2 };
  };
  await pair.cluster.restart({}, () => {
    pair.other.onFetch = fetched;
  });
  const away = Date.now() - stoodAt;
  for (const agent of [pair.home, pair.other]) await agent.beat();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: pair.other.nodeId });
  // The stall is one, also of a sandbox that two orchestrators have moved.
  expect((await of(sandbox))?.stallMs).toBeGreaterThanOrEqual(away);
  expect((await read(sandbox.sandboxID)).state).toBe("running");
});

test("a drain whose pause got no answer waits for its end, and moves the sandbox", async () => {
  const sandbox = await onHome();
  const late = gateway();
  const asked = { silentUntil: 0, late: 0 };
  pair.home.onPause = async ({ snapshotId }, take) => {
    if (asked.silentUntil === 0) asked.silentUntil = Date.now() + 1_500;
    // Longer than the orchestrator asks again.
    if (Date.now() < asked.silentUntil) throw new AppError("node_unreachable", "no answer");
    asked.late++;
    await late.promise;
    if (!pair.home.snapshots.has(snapshotId)) take();
  };
  await drain();
  await expect.poll(() => asked.late, SOON).toBeGreaterThan(0);
  expect((await of(sandbox))?.state).toBe("moving");
  const answer = routed(sandbox.sandboxID);
  late.resolve();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: pair.other.nodeId });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect(await answer).not.toMatch(/not found|is paused|transitioning/);
});

test("a sandbox that its owner pauses while a drain has it arrives paused, at whichever moment of the move", async () => {
  const [first, second] = [await create({ timeout: 600 }), await onHome()];
  const pausing = gateway();
  pair.home.onPause = async ({ executionId }, take) => {
    if (pair.home.live.get(executionId)?.body.sandboxId === first.sandboxID) await pausing.promise;
    take();
  };
  const fetching = gateway();
  const fetch = pair.other.onFetch;
  pair.other.onFetch = async (request) => {
    await fetching.promise;
    return fetch(request);
  };
  await drain();
  await expect.poll(() => pair.other.fetches.length, SOON).toBeGreaterThan(0);
  expect(fetched().size).toBe(1);
  const joined = pause(first.sandboxID);
  expect((await pause(second.sandboxID)).status).toBe(204);
  // Until the other request has come to the pause of the drain.
  await new Promise((resolve) => setTimeout(resolve, 300));
  pausing.resolve();
  expect((await joined).status).toBe(204);
  fetching.resolve();
  for (const sandbox of [first, second]) {
    await expect
      .poll(() => of(sandbox), SOON)
      .toMatchObject({ state: "moved", was: "paused", toNodeID: pair.other.nodeId });
    expect((await read(sandbox.sandboxID)).state).toBe("paused");
    expect((await connect(sandbox.sandboxID)).status).toBe(201);
  }
  expect([pair.home.live.size, pair.other.live.size]).toEqual([0, 2]);
  expect(fetched().size).toBe(2);
});

test("a node that is ready again keeps what it has, and its drain is over", async () => {
  const sandbox = await create();
  await drain();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "stays" });
  await setStatus(pair.home, "ready");
  expect(await progress()).toMatchObject({ state: "stopped", endedAt: expect.any(String) as string });
  await setStatus(pair.other, "ready");
  expect(pair.home.live.size).toBe(1);
});

test("a node that was never drained has no drain, and an unknown one none to begin", async () => {
  expect((await pair.cluster.ask("GET", `/nodes/${pair.home.nodeId}/drain`, admin)).status).toBe(404);
  expect((await pair.cluster.ask("POST", "/nodes/nobody/drain", { ...admin, body: {} })).status).toBe(404);
  // A cordon moves nothing.
  const sandbox = await onHome();
  await setStatus(pair.home, "draining");
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect((await pair.cluster.ask("GET", `/nodes/${pair.home.nodeId}/drain`, admin)).status).toBe(404);
  expect(pair.home.live.size).toBe(1);
});
