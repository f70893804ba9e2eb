/** Forks on a fake agent: copies of a running sandbox, which itself runs on unchanged. */

import { createServer } from "node:http";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { defined } from "../../../../shared/defined.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import type { Cluster } from "../../../support/cluster/cluster.ts";
import { expectEnd, sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { listening } from "../../../support/peers/listening.ts";
import { never } from "../../../support/runner/promises.ts";
import { forkingCluster } from "./forking.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await forkingCluster();
});
afterEach(() => cluster.stop());

const { create, eventsOf, read } = sandboxesOn(() => cluster);

interface ForkAnswer {
  readonly sandbox?: Sandbox;
  readonly error?: { readonly code: number; readonly message: string; readonly error_code: string };
}

const fork = (id: string, body: object = {}) => cluster.ask("POST", `/sandboxes/${id}/fork`, { body });

describe("fork", () => {
  test("gives copies with fresh ids and tokens and all else the same, and leaves the source as it was", async () => {
    const source = await create({
      timeout: 900,
      metadata: { a: "1" },
      envVars: { B: "2" },
      network: { allowPublicTraffic: false },
      autoPause: true,
      autoResume: { enabled: true },
    });
    const before = await read(source.sandboxID);
    const asked = Date.now();
    const answer = await fork(source.sandboxID, { count: 3 });
    expect(answer.status, answer.text).toBe(201);
    const forks = answer.body as ForkAnswer[];
    expect(forks).toHaveLength(3);
    const sandboxes = forks.map(({ sandbox }) => sandbox as Sandbox);
    const all = [source, ...sandboxes];
    for (const key of ["sandboxID", "envdAccessToken", "trafficAccessToken"] as const) {
      expect(new Set(all.map((each) => each[key])).size, key).toBe(4);
    }
    expect(await read(source.sandboxID)).toEqual(before);
    for (const each of sandboxes) {
      const detail = await read(each.sandboxID);
      const { metadata, network, lifecycle, templateID, alias } = before;
      expect(detail).toMatchObject({ metadata, network, lifecycle, templateID, alias, state: "running" });
      expectEnd(detail, asked, 300);
      const { body } = cluster.agent.starts.find((start) => start.body.sandboxId === each.sandboxID) ?? {};
      expect(body).toMatchObject({
        envs: { B: "2" },
        accessToken: each.envdAccessToken,
        onTimeout: "pause",
        origin: { is: "snapshot", memory: true },
        build: { image: `snapshot:${body?.origin?.snapshotId}` },
      });
    }
    expect(cluster.agent.live.size).toBe(4);
    expect(await eventsOf(source.sandboxID)).toEqual(["created", "checkpointed"]);
    // The checkpoint was only for the forks, so the node has to remove it.
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
    expect(cluster.agent.removed).toHaveLength(1);
  });

  test("keeps the source routed while it is copied", async () => {
    const { sandboxID } = await create();
    const inside = createServer((_request, response) => response.end("inside"));
    const port = await listening(inside);
    onTestFinished(() => void inside.close());
    let during = "";
    cluster.agent.onCheckpoint = async (_request, take) => {
      const headers = { "svc-sandbox-id": sandboxID, "svc-sandbox-port": String(port) };
      during = await fetch(`${cluster.edgeUrl}/`, { headers }).then((response) => response.text());
      expect((await read(sandboxID)).state).toBe("running");
      take();
    };
    expect((await fork(sandboxID)).status).toBe(201);
    expect(during).toBe("inside");
  });

  test.each([
    { copiesAhead: true, copies: 3 },
    { copiesAhead: undefined, copies: undefined },
  ])("tells a node how many copies will start, if the node takes the number ($copiesAhead)", async (one) => {
    const able = { memorySnapshots: true, diskLimit: false, detail: {} };
    const capabilities = { ...able, ...defined({ copiesAhead: one.copiesAhead }) };
    const other = await forkingCluster({ agent: { facts: { capabilities } } });
    onTestFinished(() => other.stop());
    const asked: unknown[] = [];
    other.agent.onCheckpoint = (request, take) => {
      asked.push(request.copies);
      take();
    };
    const { sandboxID } = await sandboxesOn(() => other).create();
    const body = { count: 3 };
    expect((await other.ask("POST", `/sandboxes/${sandboxID}/fork`, { body })).status).toBe(201);
    expect(asked).toEqual([one.copies]);
  });

  test("reports each failure in its place", async () => {
    const { sandboxID } = await create();
    let count = 0;
    cluster.agent.onStart = (_start, run) => {
      if (++count === 2) throw new AppError("snapshot_corrupt", "a page is damaged");
      run();
    };
    await cluster.restart({ forkConcurrency: 1 });
    await cluster.agent.beat();
    const forks = (await fork(sandboxID, { count: 3, timeout: 60 })).body as ForkAnswer[];
    expect(forks.map(({ sandbox, error }) => [sandbox !== undefined, error !== undefined])).toEqual([
      [true, false],
      [false, true],
      [true, false],
    ]);
    expect(forks[1]?.error).toMatchObject({
      code: 500,
      message: expect.stringContaining("a page is damaged") as string,
      error_code: "sandbox_create_failed",
    });
  });

  test("with a wrong count, time-out, limit, state or owner is refused before the node is asked", async () => {
    const { sandboxID } = await create();
    for (const body of [{ count: 0 }, { count: 101 }, { count: 20 }, { timeout: 0 }, { timeout: -1 }]) {
      expect((await fork(sandboxID, body)).body, JSON.stringify(body)).toMatchObject({ code: 400 });
    }
    expect((await fork("inosuchsandbox")).status).toBe(404);
    const { key } = await cluster.addProject("Other");
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/fork`, { key })).status).toBe(404);
    await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`);
    expect((await fork(sandboxID)).body).toMatchObject({
      code: 409,
      message: expect.stringContaining("is paused and cannot be forked; resume it first") as string,
    });
    expect(cluster.agent.starts).toHaveLength(1);
  });

  test("each fork beyond the limit gets its own 429", async () => {
    await cluster.restart({ maxProjectSandboxes: 3 });
    await cluster.agent.beat();
    const { sandboxID } = await create();
    await create();
    const forks = (await fork(sandboxID, { count: 2 })).body as ForkAnswer[];
    expect(forks.flatMap(({ error }) => (error === undefined ? [] : [error]))).toMatchObject([
      { code: 429, error_code: "too_many_sandboxes" },
    ]);
  });

  test.each(["snapshot_failed", "no_space", "node_busy"] as const)(
    "refused by the node with %s: the source runs on, the caller has the reason, nothing is left",
    async (code) => {
      const { sandboxID } = await create();
      const before = await read(sandboxID);
      cluster.agent.onCheckpoint = () => {
        throw new AppError(code, "because of a test");
      };
      const answer = await fork(sandboxID);
      expect(answer.body).toMatchObject({ error_code: code, code: answer.status });
      expect(await read(sandboxID)).toEqual(before);
      cluster.agent.onCheckpoint = (_request, take) => take();
      expect((await fork(sandboxID)).status).toBe(201);
    },
  );

  test("that another orchestrator has undone meanwhile is 409, whatever the node says of it", async () => {
    const { sandboxID } = await create();
    cluster.agent.onCheckpoint = async () => {
      await cluster.database.query(`update sandboxes set state = 'running' where id = '${sandboxID}'`);
      throw new AppError("snapshot_failed", "its files were removed");
    };
    expect((await fork(sandboxID)).body).toMatchObject({ code: 409, error_code: "conflict" });
    expect((await read(sandboxID)).state).toBe("running");
  });

  test("when a node does not answer, the source runs on, and forks that the node made are removed", async () => {
    const { sandboxID } = await create();
    cluster.agent.onCheckpoint = async (_request, take) => {
      take();
      await never();
    };
    await cluster.restart({ snapshotTimeoutMs: 100, patienceMs: 100 });
    await cluster.agent.beat();
    expect((await fork(sandboxID)).body).toMatchObject({ code: 503, error_code: "node_unreachable" });
    expect((await read(sandboxID)).state).toBe("running");
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
  });
});
