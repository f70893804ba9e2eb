/** Rewinds on a fake agent: a sandbox goes back to a snapshot of itself and keeps what others know it by. */

import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { gateway, never } from "../../../support/runner/promises.ts";
import { arrived, pausingCluster } from "./pausing.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await pausingCluster();
});
afterEach(() => cluster.stop());

const { connect, create, eventsOf, pause, post, read, routed } = sandboxesOn(() => cluster);
const rewind = (id: string, body: object) => post(id, "rewind", body);
const liveOf = (id: string) => [...cluster.agent.live.values()].filter(({ body }) => body.sandboxId === id);

const secondsLeft = ({ endAt }: { readonly endAt: string }) => (Date.parse(endAt) - Date.now()) / 1000;

async function snapshotOf(id: string, body: object = {}): Promise<string> {
  const answer = await post(id, "snapshots", body);
  expect(answer.status, answer.text).toBe(201);
  return (answer.body as { snapshotID: string }).snapshotID;
}

describe("a rewind", () => {
  test("of a running sandbox keeps its id, tokens, options and end, and starts from the snapshot as a new execution", async () => {
    const sandbox = await create({
      timeout: 900,
      metadata: { a: "1" },
      envVars: { B: "2" },
      network: { allowPublicTraffic: false, denyOut: ["0.0.0.0/0"] },
    });
    const id = sandbox.sandboxID;
    const snapshotID = await snapshotOf(id, { name: "root" });
    const before = await read(id);
    const answer = await rewind(id, { snapshotID });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual(sandbox);
    const [first, second] = cluster.agent.starts;
    expect(second?.body).toEqual({
      ...first?.body,
      // The node keeps the one that it has.
      record: undefined,
      endAt: second?.body.endAt,
      origin: {
        is: "rewind",
        snapshotId: [...cluster.agent.snapshots.keys()][0],
        memory: true,
        replaces: first?.executionId,
      },
    });
    expect(liveOf(id).map(({ executionId }) => executionId)).toEqual([second?.executionId]);
    expect(await read(id)).toEqual({ ...before, startedAt: (await read(id)).startedAt });
    expect(await routed(id)).not.toContain("The sandbox was not found");
    expect(await eventsOf(id)).toEqual(["created", "checkpointed", "rewound"]);
    // The snapshot stays, for as many rewinds as are wanted.
    expect((await rewind(id, { snapshotID, memory: false })).status).toBe(200);
    expect(cluster.agent.starts.at(-1)?.body.origin).toMatchObject({ memory: false });
    expect(liveOf(id)).toHaveLength(1);
    await cluster.agent.beat();
    expect(liveOf(id)).toHaveLength(1);
    expect([...cluster.agent.holds, ...cluster.agent.removed]).toEqual([]);
  });

  test("of a paused sandbox leaves it running, with another end, and removes what it was paused with", async () => {
    const { sandboxID: id } = await create({ timeout: 900 });
    const snapshotID = await snapshotOf(id);
    await pause(id);
    const former = [...cluster.agent.snapshots.values()].find(({ kind }) => kind === "pause")?.snapshotId;
    expect((await rewind(id, { snapshotID, timeout: 60 })).status).toBe(200);
    const detail = await read(id);
    expect(detail.state).toBe("running");
    expect(secondsLeft(detail)).toBeGreaterThan(30);
    expect(secondsLeft(detail)).toBeLessThanOrEqual(60);
    expect(cluster.agent.starts.at(-1)?.body.origin).not.toHaveProperty("replaces");
    await expect.poll(() => cluster.agent.removed).toEqual([former]);
    expect(await eventsOf(id)).toEqual(["created", "checkpointed", "paused", "rewound"]);
    await pause(id);
    expect((await rewind(id, { snapshotID })).status).toBe(200);
    expect(secondsLeft(await read(id))).toBeGreaterThan(240);
    expect(secondsLeft(await read(id))).toBeLessThanOrEqual(300);
  });

  test.each(["snapshot_corrupt", "snapshot_incompatible", "sandbox_create_failed", "no_space"] as const)(
    "refused by the node with %s leaves it as it was, running or paused",
    async (code) => {
      const { sandboxID: id } = await create();
      const snapshotID = await snapshotOf(id);
      const executions = liveOf(id).map(({ executionId }) => executionId);
      cluster.agent.onStart = () => {
        throw new AppError(code, "because of a test");
      };
      const answer = await rewind(id, { snapshotID });
      expect(answer.body).toMatchObject({ error_code: code, message: "because of a test", code: answer.status });
      expect((await read(id)).state).toBe("running");
      expect(liveOf(id).map(({ executionId }) => executionId)).toEqual(executions);
      expect(await routed(id)).not.toContain("The sandbox was not found");
      await pause(id);
      expect((await rewind(id, { snapshotID })).body).toMatchObject({ error_code: code });
      expect((await read(id)).state).toBe("paused");
      cluster.agent.onStart = (_start, run) => run();
      expect((await connect(id)).status).toBe(201);
    },
  );

  test("whose answer is lost is finished as the same execution, by the next request for it", async () => {
    const { sandboxID: id } = await create();
    const snapshotID = await snapshotOf(id);
    await cluster.restart({ resumeTimeoutMs: 1_000, patienceMs: 400 });
    await cluster.agent.beat();
    cluster.agent.onStart = async (_start, run) => {
      run();
      await never();
    };
    expect((await rewind(id, { snapshotID })).status).toBe(503);
    cluster.agent.onStart = (_start, run) => run();
    const starts = () => new Set(cluster.agent.starts.map(({ executionId }) => executionId)).size;
    // Until the node answers within the short limit.
    await expect.poll(async () => (await rewind(id, { snapshotID })).status).toBe(200);
    expect(starts()).toBe(2);
    expect(liveOf(id)).toHaveLength(1);
    expect(await eventsOf(id)).toEqual(["created", "checkpointed", "rewound"]);
  });

  test("under way is one for all that ask for the same, others wait for it, and a kill ends both executions", async () => {
    const { sandboxID: id } = await create();
    const snapshotID = await snapshotOf(id);
    const go = gateway();
    cluster.agent.onStart = async (_start, run) => {
      await go.promise;
      run();
    };
    const same = [1, 2].map(() => rewind(id, { snapshotID }));
    await expect.poll(() => cluster.agent.starts.length).toBe(2);
    // While it is rewound it reads as running, and a request to it waits.
    expect((await read(id)).state).toBe("running");
    const visit = routed(id);
    await arrived(cluster);
    go.resolve();
    expect((await Promise.all(same)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await visit).not.toContain("The sandbox was not found");
    expect(cluster.agent.starts).toHaveLength(2);

    const paused = gateway();
    cluster.agent.onStart = async (_start, run) => {
      await paused.promise;
      run();
    };
    const before = rewind(id, { snapshotID });
    await expect.poll(() => cluster.agent.starts.length).toBe(3);
    const pausing = pause(id);
    await arrived(cluster);
    paused.resolve();
    expect([(await before).status, (await pausing).status]).toEqual([200, 204]);
    cluster.agent.onStart = (_start, run) => run();
    expect((await connect(id)).status).toBe(201);

    const held = gateway();
    cluster.agent.onStart = async (_start, run) => {
      await held.promise;
      run();
    };
    const count = cluster.agent.starts.length;
    const rewinding = rewind(id, { snapshotID });
    await expect.poll(() => cluster.agent.starts.length).toBe(count + 1);
    expect((await cluster.ask("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    held.resolve();
    expect((await rewinding).status).toBe(409);
    expect(cluster.agent.stops).toContain(cluster.agent.starts.at(-1)?.executionId);
    expect(liveOf(id)).toEqual([]);
  });

  test("goes to a snapshot of the sandbox that it was forked or started from, if that was taken before", async () => {
    const { sandboxID: id } = await create();
    const early = await snapshotOf(id);
    const forks = (await post(id, "fork", { count: 1 })).body as { sandbox: Sandbox }[];
    const fork = forks[0]?.sandbox.sandboxID ?? "";
    const late = await snapshotOf(id);
    const started = await create({ templateID: late });
    expect((await rewind(fork, { snapshotID: early })).status).toBe(200);
    for (const snapshotID of [early, late]) {
      const answer = await rewind(started.sandboxID, { snapshotID });
      expect(answer.status, answer.text).toBe(200);
    }
    const refused = [
      await rewind(fork, { snapshotID: late }),
      await rewind(id, { snapshotID: await snapshotOf(fork) }),
    ];
    for (const answer of refused) {
      expect(answer.body).toMatchObject({ code: 409, error_code: "conflict" });
      expect(answer.text).toContain("is not a state that sandbox");
    }
  });

  test("names a snapshot that is there, and a sandbox that has not ended", async () => {
    const { sandboxID: id } = await create();
    const snapshotID = await snapshotOf(id);
    expect((await rewind(id, { snapshotID: "base" })).status).toBe(400);
    expect((await rewind(id, {})).status).toBe(400);
    expect((await rewind(id, { snapshotID: "nothing" })).status).toBe(404);
    expect((await rewind(`i${randomUUID().replaceAll("-", "").slice(0, 19)}`, { snapshotID })).status).toBe(404);
    await cluster.ask("DELETE", `/sandboxes/${id}`);
    expect((await rewind(id, { snapshotID })).status).toBe(404);
  });

  test("counts as a start, so that a limit of starts a minute holds for it", async () => {
    const { projectId, key } = await cluster.addProject("fast");
    const headers = { "x-admin-token": ADMIN_TOKEN };
    const body = { limits: { startsPerMinute: 2, sandboxes: 1 } };
    await cluster.ask("PATCH", `/admin/projects/${projectId}`, { key: null, headers, body });
    const ask = async (method: string, path: string, sent: object) => cluster.ask(method, path, { key, body: sent });
    const made = await ask("POST", "/v2/sandboxes", { templateID: "base" });
    const { sandboxID: id } = made.body as { sandboxID: string };
    const { snapshotID } = (await ask("POST", `/sandboxes/${id}/snapshots`, {})).body as { snapshotID: string };
    // It runs already, so the limit of concurrent sandboxes is not in the way.
    expect((await ask("POST", `/sandboxes/${id}/rewind`, { snapshotID })).status).toBe(200);
    const refused = await ask("POST", `/sandboxes/${id}/rewind`, { snapshotID });
    expect(refused.body).toMatchObject({
      code: 429,
      message: expect.stringContaining("2 sandbox starts a minute") as string,
    });
    expect(liveOf(id)).toHaveLength(1);
  });
});
