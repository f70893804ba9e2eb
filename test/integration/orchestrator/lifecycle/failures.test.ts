/** Starts that fail in any way leave no execution and no record that claims to run, and give the caller the reason. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { gateway, never } from "../../../support/runner/promises.ts";

let cluster: Cluster;
const create = (body: object = {}) => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });

async function nothingRuns(agents: readonly FakeAgent[]): Promise<void> {
  expect((await cluster.ask("GET", "/v2/sandboxes")).body).toEqual([]);
  // The node gets the stop request in the background, after the caller has its answer.
  await expect.poll(() => agents.reduce((sum, { live }) => sum + live.size, 0)).toBe(0);
}

// Only where a test waits for a limit is that limit short: a busy machine answers late.
describe("a node that hangs in a start", () => {
  beforeEach(async () => {
    cluster = await startCluster({ config: { startTimeoutMs: 1_500, placementTimeoutMs: 3_000 } });
  });
  afterEach(() => cluster.stop());

  test("a create on a node that hangs is answered with 504 placement_timeout, and its late start is refused", async () => {
    let late: () => void = () => undefined;
    cluster.agent.onStart = async (_start, run) => {
      late = run;
      await never();
    };
    const answer = await create();
    expect(answer.body).toMatchObject({ code: 504, error_code: "placement_timeout" });
    // Each start that the node has heard of, which may be a second one.
    const { starts, stops, stopsByReply } = cluster.agent;
    const stopped = () => new Set([...stops, ...stopsByReply]);
    await expect
      .poll(() => starts.length > 0 && starts.every(({ executionId }) => stopped().has(executionId)))
      .toBe(true);
    expect(late).toThrow("stopped");
    await nothingRuns(cluster.agents);
  });

  test("after a lost answer the node is asked to stop what it started", async () => {
    cluster.agent.onStart = async (_start, run) => {
      run();
      await never();
    };
    expect((await create()).status).toBe(504);
    await nothingRuns(cluster.agents);
  });
});

describe("a node with the ordinary limits", () => {
  beforeEach(async () => {
    cluster = await startCluster();
  });
  afterEach(() => cluster.stop());

  test("a create on a node that fails is answered with 500 sandbox_create_failed and the reason", async () => {
    cluster.agent.onStart = () => {
      throw new AppError("sandbox_create_failed", "envd did not answer in time");
    };
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body).toMatchObject({
      error_code: "sandbox_create_failed",
      message: "Failed to place sandbox: envd did not answer in time",
    });
    await nothingRuns(cluster.agents);
  });

  test("a node that is busy for a moment gets the request again", async () => {
    let refusals = 2;
    cluster.agent.onStart = (_start, run) => {
      if (refusals-- > 0) throw new AppError("node_busy", "busy");
      run();
    };
    expect((await create()).status).toBe(201);
    expect(cluster.agent.live.size).toBe(1);
  });

  test("a create on a node whose process is gone is answered with 500 and the node's id, and leaves no sandbox", async () => {
    await cluster.agent.stop();
    const answer = await create();
    expect(answer.body).toMatchObject({ code: 500, error_code: "sandbox_create_failed" });
    expect(answer.text).toContain("node n1 did not answer");
    expect((await cluster.ask("GET", "/v2/sandboxes")).body).toEqual([]);
  });

  test("a create on a node that stays busy is answered with 503 cluster_at_capacity", async () => {
    await cluster.stop();
    // A start has the ordinary limit, so that only the end of the placement ends the calls.
    cluster = await startCluster({ config: { placementTimeoutMs: 4_000 } });
    cluster.agent.onStart = () => {
      throw new AppError("node_busy", "busy");
    };
    const answer = await create();
    expect(answer.body).toMatchObject({ code: 503, error_code: "cluster_at_capacity" });
    expect(cluster.agent.starts.length).toBeGreaterThan(1);
    await nothingRuns(cluster.agents);
  });

  test("a kill whose node does not answer is still a kill; the next report ends the execution", async () => {
    await cluster.stop();
    // The node reports only when the test says so: a report by the clock could end the execution before the test looks.
    cluster = await startCluster({ agent: { heartbeatMs: 0 }, config: { stopTimeoutMs: 300, nodeTimeoutMs: 600_000 } });
    const { sandboxID } = (await create()).body as { sandboxID: string };
    cluster.agent.onStop = never;
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(cluster.agent.live.size).toBe(1);
    await cluster.agent.beat();
    expect(cluster.agent.live.size).toBe(0);
  });

  test("kill wins over a start: the creator gets 409, nothing runs", async () => {
    let run: () => void = () => undefined;
    const answer = gateway();
    cluster.agent.onStart = async (_start, go) => {
      run = go;
      await answer.promise;
    };
    const creating: Promise<Answer> = create();
    await expect.poll(() => cluster.agent.starts.length).toBe(1);
    const killed = await cluster.ask("POST", `/admin/teams/${cluster.teamId}/sandboxes/kill`, {
      key: null,
      headers: { "x-admin-token": "test-admin-token-0001" },
    });
    expect(killed.body).toEqual({ killedCount: 1, failedCount: 0 });
    expect(run).toThrow("stopped");
    answer.resolve();
    expect((await creating).body).toMatchObject({ code: 409 });
    await nothingRuns(cluster.agents);
  });
});

describe("three nodes", () => {
  beforeEach(async () => {
    cluster = await startCluster({ agents: 3 });
  });
  afterEach(() => cluster.stop());

  test("a node that fails is passed over, under another execution id", async () => {
    const [bad] = cluster.agents;
    if (bad === undefined) throw new Error("no agent");
    bad.onStart = (_start, run) => {
      run();
      throw new AppError("internal", "disk broken");
    };
    for (let index = 0; index < 20; index++) expect((await create()).status).toBe(201);
    await expect.poll(() => bad.live.size).toBe(0);
    const ids = cluster.agents.flatMap(({ starts }) => starts.map(({ executionId }) => executionId));
    expect(new Set(ids).size).toBe(ids.length);
    const started = new Set(bad.starts.map(({ executionId }) => executionId));
    expect(new Set([...bad.stops, ...bad.stopsByReply])).toEqual(started);
  });

  test("a create fails for good after three nodes have failed", async () => {
    for (const agent of cluster.agents) {
      agent.onStart = () => {
        throw new AppError("internal", "disk broken");
      };
    }
    const answer = await create();
    expect(answer.body).toMatchObject({ code: 500, error_code: "sandbox_create_failed" });
    expect(answer.text).toContain("repeated create failures (3): disk broken");
    await nothingRuns(cluster.agents);
  });

  test("a burst of creates is spread over the nodes before any node has reported", async () => {
    await cluster.stop();
    // The nodes send no report by the clock: on a busy machine one would come in the middle of the burst.
    cluster = await startCluster({ agents: 3, agent: { heartbeatMs: 0 }, config: { nodeTimeoutMs: 600_000 } });
    await Promise.all(Array.from({ length: 30 }, () => create()));
    for (const { live } of cluster.agents) expect(live.size).toBeGreaterThan(4);
  });
});
