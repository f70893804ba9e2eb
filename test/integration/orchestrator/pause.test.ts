/** Pause, resume, connect and kill of paused sandboxes, on a fake agent: every answer, and every failure of the node. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox, SandboxDetail } from "../../../shared/api/sandbox-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Answer, type Cluster, startCluster } from "../../support/fakes/cluster.ts";

let cluster: Cluster;
const never = () => new Promise<void>(() => undefined);

beforeEach(async () => {
  cluster = await startCluster({
    config: {
      patienceMs: 400,
      captureTimeoutMs: 2_000,
      resumeTimeoutMs: 1_000,
      orphanGraceMs: 100,
      stopTimeoutMs: 500,
    },
  });
});
afterEach(() => cluster.stop());

async function create(body: object = {}): Promise<Sandbox> {
  const answer = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as Sandbox;
}

const post = (id: string, what: string, body?: object): Promise<Answer> =>
  cluster.ask("POST", `/sandboxes/${id}/${what}`, body === undefined ? {} : { body });
const connect = (id: string, body: object = {}) => cluster.ask("POST", `/v2/sandboxes/${id}/connect`, { body });
const pause = (id: string, body?: object) => post(id, "pause", body);

async function paused(body: object = {}, how: object = {}): Promise<Sandbox> {
  const sandbox = await create(body);
  const answer = await pause(sandbox.sandboxID, how);
  expect(answer.status, answer.text).toBe(204);
  return sandbox;
}

async function read(id: string): Promise<SandboxDetail> {
  return (await cluster.ask("GET", `/sandboxes/${id}`)).body as SandboxDetail;
}

async function eventsOf(id: string): Promise<string[]> {
  const list = (await cluster.ask("GET", `/events/sandboxes/${id}?orderAsc=true`)).body as { type: string }[];
  return list.map(({ type }) => type.replace("sandbox.lifecycle.", ""));
}

function routed(id: string): Promise<string> {
  return fetch(`${cluster.edgeUrl}/`, { headers: { "svc-sandbox-id": id, "svc-sandbox-port": "1" } }).then((response) =>
    response.text(),
  );
}

describe("pause", () => {
  test("answers when it is durable and unroutable, keeps everything, and writes an event", async () => {
    const sandbox = await create({ metadata: { a: "1" }, timeout: 600 });
    const id = sandbox.sandboxID;
    const before = await read(id);
    expect((await pause(id)).status).toBe(204);
    expect(cluster.agent.live.size).toBe(0);
    expect([...cluster.agent.snapshots.values()]).toMatchObject([{ kind: "pause", sandboxId: id, memory: true }]);
    expect(await routed(id)).toContain("The sandbox was not found");
    const after = await read(id);
    expect(after).toEqual({ ...before, state: "paused", endAt: after.endAt });
    expect(Math.abs(Date.parse(after.endAt) - Date.now())).toBeLessThan(2_000);
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
    const go = hold((held) => {
      cluster.agent.onPause = async (_capture, take) => {
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

  test("whose answer is lost is requested again, with the same snapshot", async () => {
    const { sandboxID } = await create();
    await cluster.restart({ captureTimeoutMs: 200, patienceMs: 2_000 });
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
    await cluster.restart({ captureTimeoutMs: 300, patienceMs: 300 });
    const answer = await pause(sandboxID);
    expect(answer.body).toMatchObject({ code: 503, error_code: "node_unreachable" });
    expect((await read(sandboxID)).state).toBe("paused");
    expect(await routed(sandboxID)).toContain("The sandbox was not found");
    cluster.agent.onPause = (_capture, take) => take();
    expect((await pause(sandboxID)).status).toBe(204);
    expect(cluster.agent.live.size).toBe(0);
  });

  test("without memory keeps the disk, and the record shows that", async () => {
    const { sandboxID } = await paused({}, { memory: false });
    expect([...cluster.agent.snapshots.values()]).toMatchObject([{ memory: false }]);
    expect((await connect(sandboxID)).status).toBe(201);
    expect(cluster.agent.starts.at(-1)?.body.origin).toMatchObject({ is: "paused" });
  });

  test("on a node that cannot keep memory keeps the disk, and the events say what came back", async () => {
    const capabilities = { memorySnapshots: false, diskLimit: false, detail: { memorySnapshots: "no CRIU" } };
    const plain = await startCluster({ agent: { facts: { capabilities } } });
    try {
      const made = (await plain.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).body as Sandbox;
      const path = `/sandboxes/${made.sandboxID}`;
      expect((await plain.ask("POST", `${path}/pause`, { body: { memory: true } })).status).toBe(204);
      expect((await plain.ask("POST", `/v2${path}/connect`, { body: { memory: true } })).status).toBe(201);
      const events = (await plain.ask("GET", `/events/sandboxes/${made.sandboxID}?orderAsc=true`)).body as {
        eventData: unknown;
      }[];
      expect(events.slice(1).map(({ eventData }) => eventData)).toEqual([{ memory: false }, { restored: "disk" }]);
      // Nothing of it is of use once the disk is running again.
      await expect.poll(() => plain.agent.snapshots.size).toBe(0);
      const taken = await plain.ask("POST", `${path}/snapshots`, { body: {} });
      expect(taken.status).toBe(201);
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

/** Work on the node that waits: `held` in it resolves once the returned function is called, with some time for joiners. */
function hold(set: (held: () => Promise<void>) => void): () => Promise<void> {
  let open: () => void = () => undefined;
  let begun: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const inside = new Promise<void>((resolve) => {
    begun = resolve;
  });
  set(() => {
    begun();
    return opened;
  });
  return async () => {
    await inside;
    // Long enough for requests that were sent before.
    await new Promise((resolve) => setTimeout(resolve, 100));
    open();
  };
}

describe("connect", () => {
  test("brings back the same sandbox under a new execution, then removes its snapshot", async () => {
    const sandbox = await paused({
      envVars: { A: "1" },
      network: { allowPublicTraffic: false, denyOut: ["0.0.0.0/0"] },
      timeout: 600,
    });
    const id = sandbox.sandboxID;
    const [snapshot] = [...cluster.agent.snapshots.values()];
    const answer = await connect(id, { timeout: 900 });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual(sandbox);
    const [first, second] = cluster.agent.starts;
    expect(second?.executionId).not.toBe(first?.executionId);
    expect(second?.body).toEqual({
      ...first?.body,
      endAt: second?.body.endAt,
      origin: { is: "paused", snapshotId: snapshot?.snapshotId, memory: true },
    });
    const detail = await read(id);
    expect(detail).toMatchObject({ state: "running", network: { allowPublicTraffic: false } });
    expect(Math.round((Date.parse(detail.endAt) - Date.now()) / 1000)).toBe(900);
    await expect.poll(() => cluster.agent.removed).toEqual([snapshot?.snapshotId]);
    expect(await routed(id)).not.toContain("The sandbox was not found");
    expect(await eventsOf(id)).toEqual(["created", "paused", "resumed"]);
    expect((await connect(id)).status).toBe(200);
  });

  test("may shorten the time that was left before the pause: it is counted from now", async () => {
    const { sandboxID } = await paused({ timeout: 3600 });
    await connect(sandboxID, { timeout: 60 });
    expect(Math.round((Date.parse((await read(sandboxID)).endAt) - Date.now()) / 1000)).toBe(60);
  });

  test("by many at once is one start, and each gets at least its time", async () => {
    const { sandboxID } = await paused();
    const go = hold((held) => {
      cluster.agent.onStart = async (_start, run) => {
        await held();
        run();
      };
    });
    const answers = Promise.all([60, 900, 30].map((timeout) => connect(sandboxID, { timeout })));
    await go();
    expect((await answers).map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(cluster.agent.starts).toHaveLength(2);
    expect(Math.round((Date.parse((await read(sandboxID)).endAt) - Date.now()) / 1000)).toBe(900);
  });

  test("without memory does not join a start with memory, and keeps the snapshot when it starts itself", async () => {
    const { sandboxID } = await paused();
    const [snapshotId] = [...cluster.agent.snapshots.keys()];
    let go: () => void = () => undefined;
    cluster.agent.onStart = async (_start, run) => {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      run();
    };
    const plain = connect(sandboxID);
    await expect.poll(() => cluster.agent.starts.length).toBe(2);
    expect((await read(sandboxID)).state).toBe("paused");
    expect((await connect(sandboxID, { memory: false })).body).toMatchObject({
      code: 409,
      error_code: "sandbox_start_in_flight",
    });
    go();
    expect((await plain).status).toBe(201);
    cluster.agent.onStart = (_start, run) => run();
    await expect.poll(() => cluster.agent.removed).toEqual([snapshotId]);

    await pause(sandboxID);
    const [kept = ""] = [...cluster.agent.snapshots.keys()];
    expect((await connect(sandboxID, { memory: false })).status).toBe(201);
    expect(cluster.agent.starts.at(-1)?.body.origin).toMatchObject({ memory: false, snapshotId: kept });
    await cluster.agent.beat();
    expect(cluster.agent.snapshots.has(kept)).toBe(true);
    // Superseded by the next pause, and only once that is durable.
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

  test("the first version of the route takes and refuses the same words", async () => {
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

  test.each(["snapshot_corrupt", "snapshot_incompatible", "sandbox_memory_override_disabled", "internal"] as const)(
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

  test("while its node is silent: undecided, then the same execution when it answers", async () => {
    const { sandboxID } = await paused();
    await cluster.restart({ resumeTimeoutMs: 200, patienceMs: 200 });
    await cluster.agent.beat();
    cluster.agent.onStart = async (_start, run) => {
      run();
      await never();
    };
    expect((await connect(sandboxID)).body).toMatchObject({ code: 503, error_code: "node_unreachable" });
    expect((await read(sandboxID)).state).toBe("paused");
    expect(cluster.agent.stops).toEqual([]);
    cluster.agent.onStart = (_start, run) => run();
    expect((await connect(sandboxID)).status).toBe(201);
    expect(new Set(cluster.agent.starts.map(({ executionId }) => executionId)).size).toBe(2);
    expect(cluster.agent.live.size).toBe(1);
  });

  test("when its node is not there is 503 with the reason", async () => {
    const lonely = await startCluster({ config: { nodeTimeoutMs: 3_000 }, agent: { heartbeatMs: 0 } });
    try {
      const { sandboxID } = (await lonely.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } }))
        .body as Sandbox;
      expect((await lonely.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
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
    let go: () => void = () => undefined;
    cluster.agent.onPause = async (_capture, take) => {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      take();
    };
    const pausing = pause(sandboxID);
    await expect.poll(async () => (await read(sandboxID)).state).toBe("paused");
    const connecting = connect(sandboxID);
    go();
    expect((await pausing).status).toBe(204);
    expect((await connecting).status).toBe(201);
  });
});

test("resume is 201 for a paused sandbox and 409 for a running one, with 300 s when no timeout is given", async () => {
  const { sandboxID } = await paused();
  const answer = await post(sandboxID, "resume", { autoPause: true });
  expect(answer.status).toBe(201);
  const detail = await read(sandboxID);
  expect(Math.round((Date.parse(detail.endAt) - Date.now()) / 1000)).toBe(300);
  expect(detail.lifecycle?.onTimeout).toBe("pause");
  expect((await post(sandboxID, "resume")).body).toMatchObject({ code: 409 });
  expect((await post("inosuchsandbox", "resume")).status).toBe(404);
  expect((await post(sandboxID, "resume", { timeout: 0 })).status).toBe(400);
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

  test("is killed although its node does not answer; the next reports remove the snapshot", async () => {
    const { sandboxID } = await paused();
    cluster.agent.onRemove = never;
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(cluster.agent.snapshots.size).toBe(1);
    await expect
      .poll(
        async () => {
          await cluster.agent.beat();
          return cluster.agent.snapshots.size;
        },
        { timeout: 3_000 },
      )
      .toBe(0);
  });

  test("has no time-out to set, no metrics of its own, and is there for get and lists", async () => {
    const { sandboxID } = await paused();
    expect((await post(sandboxID, "timeout", { timeout: 60 })).body).toMatchObject({
      code: 404,
      message: `Sandbox "${sandboxID}" doesn't exist or you don't have access to it`,
    });
    expect((await post(sandboxID, "refreshes", {})).status).toBe(404);
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

  test("pauses on request, with memory or without, and reads back in both states", async () => {
    const lifecycle = { autoResume: true, onTimeout: "pause" };
    const { sandboxID } = await create({ ...ends, autoResume: { enabled: true } });
    expect((await read(sandboxID)).lifecycle).toEqual(lifecycle);
    await expect.poll(async () => (await read(sandboxID)).state, { timeout: 5_000 }).toBe("paused");
    expect((await read(sandboxID)).lifecycle).toEqual(lifecycle);
    const other = await create({ ...ends, autoPauseMemory: false });
    expect(cluster.agent.starts.at(-1)?.body).toMatchObject({ onTimeout: "pause", onTimeoutMemory: false });
    await expect.poll(async () => (await read(other.sandboxID)).state, { timeout: 5_000 }).toBe("paused");
    // It reads as paused from the moment it is being paused.
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
      await expect.poll(async () => (await read(sandboxID)).state, { timeout: 5_000 }).toBe("paused");
      await expect.poll(() => [...cluster.agent.snapshots.values()]).toMatchObject([{ memory: false }]);
    },
  );

  test("set to now by the time-out route pauses at once", async () => {
    const { sandboxID } = await create({ autoPause: true, timeout: 600 });
    expect((await post(sandboxID, "timeout", { timeout: 0 })).status).toBe(204);
    await expect.poll(async () => (await read(sandboxID)).state, { timeout: 3_000 }).toBe("paused");
  });

  test("acted on by the node itself is taken over from its report", async () => {
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
