/**
 * Resumes of paused sandboxes on a fake agent, by connect and by resume: every answer, and every failure of the node.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { expectEnd, sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { gateway, never } from "../../../support/runner/promises.ts";
import { hold, pausingCluster } from "./pausing.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await pausingCluster();
});
afterEach(() => cluster.stop());

const { connect, create, eventsOf, pause, paused, post, read, routed } = sandboxesOn(() => cluster);

describe("connect", () => {
  test("brings back the same sandbox under a new execution, then removes its snapshot", async () => {
    const sandbox = await paused({
      envVars: { A: "1" },
      network: { allowPublicTraffic: false, denyOut: ["0.0.0.0/0"] },
      timeout: 600,
    });
    const id = sandbox.sandboxID;
    const [snapshot] = [...cluster.agent.snapshots.values()];
    const asked = Date.now();
    const answer = await connect(id, { timeout: 900 });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual(sandbox);
    const [first, second] = cluster.agent.starts;
    expect(second?.executionId).not.toBe(first?.executionId);
    expect(second?.body).toEqual({
      ...first?.body,
      // The node keeps the one that it has.
      record: undefined,
      endAt: second?.body.endAt,
      origin: { is: "paused", snapshotId: snapshot?.snapshotId, memory: true },
    });
    const detail = await read(id);
    expect(detail).toMatchObject({ state: "running", network: { allowPublicTraffic: false } });
    expectEnd(detail, asked, 900);
    await expect.poll(() => cluster.agent.removed).toEqual([snapshot?.snapshotId]);
    expect(await routed(id)).not.toContain("The sandbox was not found");
    expect(await eventsOf(id)).toEqual(["created", "paused", "resumed"]);
    expect((await connect(id)).status).toBe(200);
  });

  test("may shorten the time that was left before the pause, because its timeout counts from now", async () => {
    const { sandboxID } = await paused({ timeout: 3600 });
    const asked = Date.now();
    await connect(sandboxID, { timeout: 60 });
    expectEnd(await read(sandboxID), asked, 60);
  });

  test("by many callers at once makes one start, and each caller gets at least the timeout that it asked for", async () => {
    const { sandboxID } = await paused();
    const go = hold(cluster, (held) => {
      cluster.agent.onStart = async (_start, run) => {
        await held();
        run();
      };
    });
    const asked = Date.now();
    const answers = Promise.all([60, 900, 30].map((timeout) => connect(sandboxID, { timeout })));
    await go();
    expect((await answers).map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(cluster.agent.starts).toHaveLength(2);
    expectEnd(await read(sandboxID), asked, 900);
  });

  test("without memory does not join a start with memory, and keeps the snapshot when it starts itself", async () => {
    const { sandboxID } = await paused();
    const [snapshotId] = [...cluster.agent.snapshots.keys()];
    const go = gateway();
    cluster.agent.onStart = async (_start, run) => {
      await go.promise;
      run();
    };
    const plain = connect(sandboxID);
    await expect.poll(() => cluster.agent.starts.length).toBe(2);
    expect((await read(sandboxID)).state).toBe("paused");
    expect((await connect(sandboxID, { memory: false })).body).toMatchObject({
      code: 409,
      error_code: "sandbox_start_in_flight",
    });
    go.resolve();
    expect((await plain).status).toBe(201);
    cluster.agent.onStart = (_start, run) => run();
    await expect.poll(() => cluster.agent.removed).toEqual([snapshotId]);

    await pause(sandboxID);
    const [kept = ""] = [...cluster.agent.snapshots.keys()];
    expect((await connect(sandboxID, { memory: false })).status).toBe(201);
    expect(cluster.agent.starts.at(-1)?.body.origin).toMatchObject({ memory: false, snapshotId: kept });
    await cluster.agent.beat();
    expect(cluster.agent.snapshots.has(kept)).toBe(true);
    // The next pause supersedes this snapshot, but only once the new one is durable.
    await pause(sandboxID);
    await expect.poll(() => cluster.agent.removed).toContain(kept);
    expect(cluster.agent.snapshots.size).toBe(1);
  });

  test("onResume 'reboot' is a default of the sandbox, and a caller may set it", async () => {
    const { sandboxID } = await paused({ onResume: "reboot" });
    await connect(sandboxID);
    expect(cluster.agent.starts.at(-1)?.body.origin?.memory).toBe(false);
    await pause(sandboxID);
    await connect(sandboxID, { onResume: "restore" });
    expect(cluster.agent.starts.at(-1)?.body.origin?.memory).toBe(true);
    await pause(sandboxID);
    const contradiction = await connect(sandboxID, { onResume: "restore", memory: false });
    expect(contradiction.body).toMatchObject({ code: 400, message: expect.stringContaining("onResume") as string });
  });

  test("the first version of the route accepts and refuses the same values", async () => {
    const connectV1 = (id: string, body: object) =>
      cluster.ask("POST", `/sandboxes/${id}/connect`, { body: { timeout: 60, ...body } });
    const { sandboxID } = await paused({ onResume: "reboot" });
    for (const [wrong, field] of [
      [{ onTimeout: "explode" }, "onTimeout"],
      [{ onResume: "explode" }, "onResume"],
      [{ onResume: "restore", memory: false }, "onResume"],
    ] as const) {
      const refused = await connectV1(sandboxID, wrong);
      expect(refused.body).toMatchObject({ code: 400, message: expect.stringContaining(field) as string });
    }
    expect((await read(sandboxID)).state).toBe("paused");
    expect((await connectV1(sandboxID, { onResume: "restore", onTimeout: "pause" })).status).toBe(201);
    expect(cluster.agent.starts.at(-1)?.body.origin?.memory).toBe(true);
    expect((await read(sandboxID)).lifecycle?.onTimeout).toBe("pause");
    expect((await connectV1(sandboxID, { onTimeout: "kill" })).status).toBe(400);
  });

  test.each(["snapshot_corrupt", "snapshot_incompatible", "internal"] as const)(
    "refused by the node with %s leaves it paused, with its snapshot",
    async (code) => {
      const { sandboxID } = await paused();
      cluster.agent.onStart = () => {
        throw new AppError(code, "because of a test");
      };
      const answer = await connect(sandboxID);
      expect(answer.body).toMatchObject({ error_code: code, message: "because of a test", code: answer.status });
      expect((await read(sandboxID)).state).toBe("paused");
      expect(cluster.agent.snapshots.size).toBe(1);
      expect(cluster.agent.removed).toEqual([]);
      cluster.agent.onStart = (_start, run) => run();
      expect((await connect(sandboxID)).status).toBe(201);
    },
  );

  test("from a snapshot whose files are gone fails with that reason", async () => {
    const { sandboxID } = await paused();
    cluster.agent.snapshots.clear();
    expect((await connect(sandboxID)).body).toMatchObject({ error_code: "snapshot_files_missing" });
    expect((await read(sandboxID)).state).toBe("paused");
  });

  test("whose disk its node has lost for good ends it with that reason, and leaves the rest to the node's holding place", async () => {
    const { sandboxID } = await paused();
    cluster.agent.onStart = () => {
      throw new AppError("disk_lost", "container 0123 was removed from Docker, and the sandbox's disk with it");
    };
    const ended = { code: 404, error_code: "sandbox_ended", message: expect.stringContaining("with it") as string };
    expect((await connect(sandboxID)).body).toMatchObject(ended);
    expect((await connect(sandboxID)).body).toMatchObject(ended);
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body).toMatchObject(ended);
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}?ended=true`)).body).toMatchObject({
      endReason: "removed",
      endDetail: "container 0123 was removed from Docker, and the sandbox's disk with it",
    });
    expect(await eventsOf(sandboxID)).toEqual(["created", "paused", "killed"]);
    expect(cluster.agent.removed).toEqual([]);
  });

  test("whose node lacks what its disk stands on leaves it paused", async () => {
    const { sandboxID } = await paused();
    cluster.agent.onStart = () => {
      throw new AppError("no_compatible_node", "the image is gone");
    };
    expect((await connect(sandboxID)).body).toMatchObject({ code: 503, message: "the image is gone" });
    expect((await read(sandboxID)).state).toBe("paused");
    expect(cluster.agent.snapshots.size).toBe(1);
  });

  test("is undecided while its node is silent, and continues the same execution when the node answers", async () => {
    const { sandboxID } = await paused();
    await cluster.restart({ resumeTimeoutMs: 200, patienceMs: 200 });
    await cluster.agent.beat();
    cluster.agent.onStart = async (_start, run) => {
      run();
      await never();
    };
    expect((await connect(sandboxID)).body).toMatchObject({ code: 503, error_code: "node_unreachable" });
    expect((await read(sandboxID)).state).toBe("paused");
    expect([...cluster.agent.stops, ...cluster.agent.stopsByReply]).toEqual([]);
    cluster.agent.onStart = (_start, run) => run();
    // Until the node answers within the short limit, to this caller or to one before it.
    await expect.poll(async () => (await connect(sandboxID)).status).toBeLessThan(300);
    expect(new Set(cluster.agent.starts.map(({ executionId }) => executionId)).size).toBe(2);
    expect(cluster.agent.live.size).toBe(1);
  });

  test("when its node is lost gets 503 with the reason", async () => {
    const lonely = await startCluster({ config: { nodeTimeoutMs: 600_000 }, agent: { heartbeatMs: 0 } });
    try {
      const { sandboxID } = (await lonely.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } }))
        .body as Sandbox;
      expect((await lonely.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
      await lonely.restart({ nodeTimeoutMs: 3_000 });
      const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
      const status = async () => ((await lonely.ask("GET", "/nodes/n1", admin)).body as { status: string }).status;
      await expect.poll(status, { timeout: 30_000 }).toBe("unhealthy");
      const answer = await lonely.ask("POST", `/v2/sandboxes/${sandboxID}/connect`);
      expect(answer.body).toMatchObject({ code: 503, error_code: "no_compatible_node" });
    } finally {
      await lonely.stop();
    }
  });

  test("a node that is busy for a moment gets the request again", async () => {
    const { sandboxID } = await paused();
    let refusals = 2;
    cluster.agent.onStart = (_start, run) => {
      if (refusals-- > 0) throw new AppError("node_busy", "busy");
      run();
    };
    expect((await connect(sandboxID)).status).toBe(201);
  });

  test("waits for a pause under way, then resumes", async () => {
    const { sandboxID } = await create();
    const go = gateway();
    cluster.agent.onPause = async (_request, take) => {
      await go.promise;
      take();
    };
    const pausing = pause(sandboxID);
    await expect.poll(async () => (await read(sandboxID)).state).toBe("paused");
    const connecting = connect(sandboxID);
    go.resolve();
    expect((await pausing).status).toBe(204);
    expect((await connecting).status).toBe(201);
  });
});

test("resume is 201 for a paused sandbox and 409 for a running one, with 300 s when no timeout is given", async () => {
  const { sandboxID } = await paused();
  const asked = Date.now();
  const answer = await post(sandboxID, "resume", { autoPause: true });
  expect(answer.status).toBe(201);
  const detail = await read(sandboxID);
  expectEnd(detail, asked, 300);
  expect(detail.lifecycle?.onTimeout).toBe("pause");
  expect((await post(sandboxID, "resume")).body).toMatchObject({ code: 409 });
  expect((await post("inosuchsandbox", "resume")).status).toBe(404);
  expect((await post(sandboxID, "resume", { timeout: 0 })).status).toBe(400);
});
