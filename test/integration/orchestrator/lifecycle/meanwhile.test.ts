/** What is asked of a sandbox while it is stored, copied, resumed or killed: timeouts that are set, metrics, and connects. */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { Cluster } from "../../../support/cluster/cluster.ts";
import { expectEnd, sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { arrived, pausingCluster } from "./pausing.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await pausingCluster();
});
afterEach(() => cluster.stop());

const { connect, create, paused, post, read } = sandboxesOn(() => cluster);

/** The node's work begins, and stands still until `go`. */
function standing() {
  const [inside, opened] = [gateway(), gateway()];
  const work = async (_asked: unknown, done: () => void) => {
    inside.resolve();
    await opened.promise;
    done();
  };
  return { inside: inside.promise, go: () => opened.resolve(), work };
}

test.each(["snapshots", "fork"])(
  "a timeout that is set during /%s counts when that is done, and metrics are there meanwhile",
  async (act) => {
    const { sandboxID } = await create({ timeout: 600 });
    const sample = { cpuCount: 2, cpuUsedPct: 1.5, memUsed: 1, memTotal: 2, memCache: 3, diskUsed: 4, diskTotal: 5 };
    cluster.agent.metrics = [{ at: Date.now(), ...sample }];
    const { inside, go, work } = standing();
    cluster.agent.onCheckpoint = work;
    const acting = post(sandboxID, act, {});
    await inside;
    const asked = Date.now();
    const set = [post(sandboxID, "timeout", { timeout: 60 }), post(sandboxID, "refreshes", { duration: 30 })];
    await arrived(cluster);
    expect((await cluster.ask("GET", `/sandboxes/metrics?sandbox_ids=${sandboxID}`)).body).toEqual({
      sandboxes: { [sandboxID]: expect.objectContaining(sample) as unknown },
    });
    go();
    expect((await acting).status).toBe(201);
    expect((await Promise.all(set)).map(({ status }) => status)).toEqual([204, 204]);
    expectEnd(await read(sandboxID), asked, 60);
  },
);

test("a timeout that is set during a snapshot which takes longer than a client waits is refused, and changes nothing", async () => {
  const { sandboxID } = await create({ timeout: 600 });
  await cluster.restart({ patienceMs: 200 });
  await cluster.agent.beat();
  const { endAt } = await read(sandboxID);
  const { inside, go, work } = standing();
  cluster.agent.onCheckpoint = work;
  const acting = post(sandboxID, "snapshots", {});
  await inside;
  expect((await post(sandboxID, "timeout", { timeout: 60 })).body).toMatchObject({ code: 409 });
  go();
  expect((await acting).status).toBe(201);
  expect((await read(sandboxID)).endAt).toBe(endAt);
});

test("a timeout that is set during a resume counts when that is done", async () => {
  const { sandboxID } = await paused();
  const { inside, go, work } = standing();
  cluster.agent.onStart = work;
  const resuming = connect(sandboxID, { timeout: 600 });
  await inside;
  const asked = Date.now();
  const set = post(sandboxID, "timeout", { timeout: 60 });
  await arrived(cluster);
  go();
  expect((await resuming).status).toBe(201);
  expect((await set).status).toBe(204);
  expectEnd(await read(sandboxID), asked, 60);
});

test("a sandbox that is being killed answers every call as one that has ended, so that its client starts another one", async () => {
  const { sandboxID } = await create();
  const { inside, go, work } = standing();
  cluster.agent.onStop = (executionId) => work(executionId, () => undefined);
  const killing = cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  await inside;
  const answers = await Promise.all([
    connect(sandboxID),
    post(sandboxID, "resume"),
    post(sandboxID, "pause"),
    post(sandboxID, "timeout", { timeout: 60 }),
    post(sandboxID, "refreshes"),
  ]);
  go();
  for (const { body } of answers) {
    expect(body).toMatchObject({ code: 404, message: expect.stringContaining("a request killed it") as unknown });
  }
  expect((await killing).status).toBe(204);
});
