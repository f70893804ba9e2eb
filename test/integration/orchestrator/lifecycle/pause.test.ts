/**
 * Pauses on a fake agent, on request and at the end of the time, and the paused sandbox as the API shows it: every answer,
 * and every failure of the node.
 */

import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { expectEnd, sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { never } from "../../../support/runner/promises.ts";
import { hold, pausingCluster } from "./pausing.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await pausingCluster();
});
afterEach(() => cluster.stop());

const { connect, create, eventsOf, pause, paused, post, read, routed } = sandboxesOn(() => cluster);

describe("pause", () => {
  test("answers when it is durable and unroutable, keeps everything, and writes an event", async () => {
    const sandbox = await create({ metadata: { a: "1" }, timeout: 600 });
    const id = sandbox.sandboxID;
    const before = await read(id);
    const asked = Date.now();
    expect((await pause(id)).status).toBe(204);
    expect(cluster.agent.live.size).toBe(0);
    expect([...cluster.agent.snapshots.values()]).toMatchObject([{ kind: "pause", sandboxId: id, memory: true }]);
    expect(await routed(id)).toContain("The sandbox was not found");
    const after = await read(id);
    const place = {
      nodeID: cluster.agent.nodeId,
      inStore: false,
      upload: null,
      ifNodeIsLost: "it is lost with the node: it is there only, and the node has no blob store",
    };
    expect(after).toEqual({ ...before, state: "paused", endAt: after.endAt, storedBytes: 2, place });
    expectEnd(after, asked, 0);
    const list = await cluster.ask("GET", "/v2/sandboxes?state=paused");
    expect(list.body).toMatchObject([{ sandboxID: id, state: "paused" }]);
    expect((await cluster.ask("GET", "/v2/sandboxes?state=running")).body).toEqual([]);
    expect((await cluster.ask("GET", "/sandboxes")).body).toEqual([]);
    expect(await eventsOf(id)).toEqual(["created", "paused"]);
  });

  test("of a paused sandbox is 409, of a missing one 404", async () => {
    const { sandboxID } = await paused();
    expect((await pause(sandboxID)).body).toMatchObject({ code: 409 });
    expect((await pause("inosuchsandbox")).body).toMatchObject({ code: 404 });
    const { key } = await cluster.addProject("Other");
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`, { key })).status).toBe(404);
  });

  test("requested twice at once is one pause, and both callers get its result", async () => {
    const { sandboxID } = await create();
    const go = hold(cluster, (held) => {
      cluster.agent.onPause = async (_request, take) => {
        await held();
        take();
      };
    });
    const answers = Promise.all([pause(sandboxID), pause(sandboxID), pause(sandboxID)]);
    await go();
    expect((await answers).map(({ status }) => status)).toEqual([204, 204, 204]);
    expect(await eventsOf(sandboxID)).toEqual(["created", "paused"]);
  });

  test.each(["snapshot_failed", "no_space", "node_busy"] as const)(
    "refused by the node with %s leaves it running and routed, and the caller has the reason",
    async (code) => {
      const { sandboxID } = await create({ timeout: 600 });
      const before = await read(sandboxID);
      cluster.agent.onPause = () => {
        throw new AppError(code, "because of a test");
      };
      const answer = await pause(sandboxID);
      expect(answer.body).toMatchObject({ error_code: code, message: "because of a test", code: answer.status });
      expect(await read(sandboxID)).toEqual(before);
      expect(await routed(sandboxID)).not.toContain("The sandbox was not found");
      expect(await eventsOf(sandboxID)).toEqual(["created"]);
    },
  );

  test("that another orchestrator has undone meanwhile is made again, whatever the node says of the first one", async () => {
    const { sandboxID } = await create();
    let asked = 0;
    cluster.agent.onPause = async (_request, take) => {
      if (asked++ > 0) {
        take();
        return;
      }
      await cluster.database.query(`update sandboxes set state = 'running' where id = '${sandboxID}'`);
      throw new AppError("snapshot_failed", "its files were removed");
    };
    expect((await pause(sandboxID)).status).toBe(204);
    expect([asked, (await read(sandboxID)).state]).toEqual([2, "paused"]);
  });

  test("whose answer is lost is requested again, with the same snapshot", async () => {
    const { sandboxID } = await create();
    await cluster.restart({ snapshotTimeoutMs: 200, patienceMs: 60_000 });
    const ids: string[] = [];
    cluster.agent.onPause = async ({ snapshotId }, take) => {
      ids.push(snapshotId);
      take();
      await never();
    };
    expect((await pause(sandboxID)).status).toBe(204);
    expect(new Set(ids).size).toBe(1);
    expect((await read(sandboxID)).state).toBe("paused");
  });

  test("on a node that is gone stays undecided, and is finished when the node is back", async () => {
    const { sandboxID } = await create();
    cluster.agent.onPause = never;
    await cluster.restart({ snapshotTimeoutMs: 300, patienceMs: 300 });
    const answer = await pause(sandboxID);
    expect(answer.body).toMatchObject({ code: 503, error_code: "node_unreachable" });
    expect((await read(sandboxID)).state).toBe("paused");
    expect(await routed(sandboxID)).toContain("The sandbox was not found");
    cluster.agent.onPause = (_request, take) => take();
    // Until the node answers within the short limit.
    await expect.poll(async () => (await pause(sandboxID)).status).toBe(204);
    expect(cluster.agent.live.size).toBe(0);
  });

  test("that is not to be kept frozen tells the node so, and any other pause does not", async () => {
    const asked: unknown[] = [];
    cluster.agent.onPause = (request, take) => {
      asked.push(request.frozen);
      take();
    };
    for (const body of [{ frozen: false }, { frozen: true }, {}]) await paused({}, body);
    expect(asked).toEqual([false, undefined, undefined]);
    cluster.agent.onPause = (_request, take) => take();
  });

  test("without memory keeps the disk, and the record shows that", async () => {
    const { sandboxID } = await paused({}, { memory: false });
    expect([...cluster.agent.snapshots.values()]).toMatchObject([{ memory: false }]);
    expect((await connect(sandboxID)).status).toBe(201);
    expect(cluster.agent.starts.at(-1)?.body.origin).toMatchObject({ is: "paused" });
  });

  test("with memory is refused on a node that cannot store memory, and so are fork and snapshot; memory: false is the way out", async () => {
    const capabilities = { memorySnapshots: false, diskLimit: false, detail: { memorySnapshots: "no CRIU" } };
    const plain = await startCluster({ agent: { facts: { capabilities } } });
    try {
      const made = (await plain.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).body as Sandbox;
      const path = `/sandboxes/${made.sandboxID}`;
      for (const act of ["pause", "fork", "snapshots"]) {
        const refused = await plain.ask("POST", `${path}/${act}`, { body: {} });
        expect(refused.body).toMatchObject({ code: 400, error_code: "memory_snapshots_unavailable" });
        expect((await plain.ask("GET", path)).body).toMatchObject({ state: "running" });
      }
      expect(plain.agent.snapshots.size).toBe(0);
      expect((await plain.ask("POST", `${path}/snapshots`, { body: { memory: false } })).status).toBe(201);
      const forks = await plain.ask("POST", `${path}/fork`, { body: { memory: false } });
      expect(forks.body).toMatchObject([{ sandbox: { templateID: made.templateID } }]);
      expect(plain.agent.starts.at(-1)?.body.origin).toMatchObject({ is: "snapshot", memory: false });
      expect((await plain.ask("POST", `${path}/pause`, { body: { memory: false } })).status).toBe(204);
      expect((await plain.ask("POST", `/v2${path}/connect`, { body: {} })).status).toBe(201);
      const [node] = (
        await plain.ask("GET", "/nodes", { key: null, headers: { "x-admin-token": "test-admin-token-0001" } })
      ).body as unknown[];
      expect(node).toMatchObject({ capabilities: { memorySnapshots: false, details: { memorySnapshots: "no CRIU" } } });
    } finally {
      await plain.stop();
    }
  });

  test("at the timeout keeps the disk alone on such a node, and the event has the whole reason with the way out", async () => {
    const capabilities = { memorySnapshots: false, diskLimit: false, detail: { memorySnapshots: "no CRIU" } };
    const plain = await startCluster({ agent: { facts: { capabilities } } });
    try {
      const said = `a pause with memory is refused: ${"no CRIU ".repeat(20)}; use memory: false`;
      plain.agent.onPause = ({ memory }, take) => {
        if (memory) throw new AppError("memory_snapshots_unavailable", said);
        return take();
      };
      const body = { templateID: "base", autoPause: true, timeout: 1 };
      const { sandboxID } = (await plain.ask("POST", "/v2/sandboxes", { body })).body as Sandbox;
      const events = async () => (await plain.ask("GET", `/events/sandboxes/${sandboxID}`)).body;
      await expect.poll(events).toContainEqual(
        expect.objectContaining({
          type: "sandbox.lifecycle.paused",
          eventData: expect.objectContaining({ memory: false, reason: said }) as unknown,
        }),
      );
    } finally {
      await plain.stop();
    }
  });

  test("does not count as running", async () => {
    const small = await startCluster({ config: { maxProjectSandboxes: 1 } });
    try {
      const body = { templateID: "base" };
      const first = (await small.ask("POST", "/v2/sandboxes", { body })).body as Sandbox;
      expect((await small.ask("POST", "/v2/sandboxes", { body })).status).toBe(429);
      expect((await small.ask("POST", `/sandboxes/${first.sandboxID}/pause`)).status).toBe(204);
      const second = (await small.ask("POST", "/v2/sandboxes", { body })).body as Sandbox;
      const refused = await small.ask("POST", `/v2/sandboxes/${first.sandboxID}/connect`, { body: {} });
      expect(refused.body).toMatchObject({ code: 429, error_code: "too_many_sandboxes" });
      await small.ask("DELETE", `/sandboxes/${second.sandboxID}`);
      const resumed = await small.ask("POST", `/v2/sandboxes/${first.sandboxID}/connect`, { body: {} });
      expect(resumed.status).toBe(201);
    } finally {
      await small.stop();
    }
  });
});

describe("a paused sandbox", () => {
  test("is killed with its snapshot, once", async () => {
    const { sandboxID } = await paused();
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(cluster.agent.snapshots.size).toBe(0);
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(404);
    expect((await connect(sandboxID)).status).toBe(404);
    expect(await eventsOf(sandboxID)).toEqual(["created", "paused", "killed"]);
  });

  test("is killed although its node does not answer, which is asked again for the snapshot", async () => {
    const { sandboxID } = await paused();
    await cluster.restart({ stopTimeoutMs: 500 });
    const asked: string[] = [];
    cluster.agent.onRemove = (snapshotId) => {
      asked.push(snapshotId);
      return never();
    };
    const [snapshotId] = cluster.agent.snapshots.keys();
    const killing = cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    // The request is never answered.
    await expect.poll(() => asked).toContain(snapshotId);
    // Reports during the kill, further apart than the grace of a snapshot that no record needs.
    for (let reports = 0; reports < 3; reports++) {
      await cluster.agent.beat();
      await delay(120);
    }
    expect((await killing).status).toBe(204);
    cluster.agent.onRemove = () => undefined;
    await expect
      .poll(async () => {
        await cluster.agent.beat();
        return cluster.agent.snapshots.size;
      })
      .toBe(0);
    expect(cluster.agent.holds).toEqual([]);
  });

  test("has no time-out to set, no metrics of its own, and is there for get and lists", async () => {
    const { sandboxID } = await paused();
    expect((await post(sandboxID, "timeout", { timeout: 60 })).body).toMatchObject({
      code: 404,
      error_code: "sandbox_not_found",
      message: `Sandbox "${sandboxID}" is paused, and has no timeout until it is resumed: connect to it, which takes the timeout that it is to have`,
    });
    expect((await post(sandboxID, "refreshes", {})).body).toMatchObject({
      code: 404,
      message: expect.stringContaining("is paused") as unknown,
    });
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}/metrics`)).body).toEqual([]);
    expect((await cluster.ask("GET", `/sandboxes/metrics?sandbox_ids=${sandboxID}`)).body).toEqual({ sandboxes: {} });
  });

  test("stays over a restart, and is resumed after it", async () => {
    const sandbox = await paused({ metadata: { a: "1" } });
    const before = await read(sandbox.sandboxID);
    await cluster.restart();
    await cluster.agent.beat();
    expect(await read(sandbox.sandboxID)).toEqual(before);
    const answer = await connect(sandbox.sandboxID);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toEqual(sandbox);
  });
});

describe("the end", () => {
  const ends = { autoPause: true, timeout: 1 };

  test("pauses the sandbox when the create call asked for that, with memory or without, and reads back in both states", async () => {
    const lifecycle = { autoResume: true, onTimeout: "pause" };
    const { sandboxID } = await create({ ...ends, autoResume: { enabled: true } });
    expect((await read(sandboxID)).lifecycle).toEqual(lifecycle);
    await expect.poll(async () => (await read(sandboxID)).state).toBe("paused");
    expect((await read(sandboxID)).lifecycle).toEqual(lifecycle);
    const other = await create({ ...ends, autoPauseMemory: false });
    expect(cluster.agent.starts.at(-1)?.body).toMatchObject({ onTimeout: "pause", onTimeoutMemory: false });
    await expect.poll(async () => (await read(other.sandboxID)).state).toBe("paused");
    // The API shows the sandbox as paused from the beginning of its pause.
    const taken = () => [...cluster.agent.snapshots.values()].map(({ memory }) => memory);
    await expect.poll(taken).toEqual([true, false]);
  });

  test.each(["snapshot_failed", "no_space"] as const)(
    "keeps the disk where memory cannot be kept: %s",
    async (code) => {
      cluster.agent.onPause = ({ memory }, take) => {
        if (memory) throw new AppError(code, "because of a test");
        take();
      };
      const { sandboxID } = await create(ends);
      await expect.poll(async () => (await read(sandboxID)).state).toBe("paused");
      await expect.poll(() => [...cluster.agent.snapshots.values()]).toMatchObject([{ memory: false }]);
    },
  );

  test("set to now by the time-out route pauses at once", async () => {
    const { sandboxID } = await create({ autoPause: true, timeout: 600 });
    expect((await post(sandboxID, "timeout", { timeout: 0 })).status).toBe(204);
    await expect.poll(async () => (await read(sandboxID)).state).toBe("paused");
  });

  test("that the node has carried out by itself is taken over from the node's report", async () => {
    const { sandboxID } = await create();
    const [executionId = ""] = [...cluster.agent.live.keys()];
    const snapshotId = cluster.agent.pauseByItself(executionId);
    await cluster.agent.beat();
    expect((await read(sandboxID)).state).toBe("paused");
    expect(await eventsOf(sandboxID)).toEqual(["created", "paused"]);
    expect((await connect(sandboxID)).status).toBe(201);
    expect(cluster.agent.starts.at(-1)?.body.origin?.snapshotId).toBe(snapshotId);
  });
});
