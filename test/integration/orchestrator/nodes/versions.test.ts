/**
 * An orchestrator beside an agent that is one version older or newer. Of a newer one's reports it takes what it knows: a report that it
 * refused would cost the node its sandboxes. An older one's report lacks all that came later, and it refuses orders that it does not know.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeApi } from "../../../../shared/agent-api/routes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { clusterProblems } from "../../../support/cluster/invariants.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { reportOf } from "./reporting.ts";

const SOON = { timeout: 30_000 };
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({
    agent: { heartbeatMs: 0 },
    config: { nodeTimeoutMs: 600_000, nodeLostMs: 600_000, placementTimeoutMs: 2_000 },
  });
});
afterEach(() => cluster.stop());

const { connect, create, eventsOf, pause, read } = sandboxesOn(() => cluster);
const expectNoProblems = () => expect.poll(() => clusterProblems(cluster), SOON).toEqual([]);

/** Sends a report as its agent does, whatever is in it. */
async function send(path: string, body: unknown) {
  const headers = { authorization: `Bearer ${cluster.agent.tokens.nodeToken}`, "content-type": "application/json" };
  const response = await fetch(`${cluster.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

/** A copy with a field more in each object, which no map is. */
function withMore(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMore);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, each]: [string, unknown]) => {
    const isMap = name === "labels" || name === "detail";
    return [name, isMap ? each : withMore(each)] as const;
  });
  return { ...Object.fromEntries(entries), later: { of: "a later version", list: ["x".repeat(10_000)] } };
}

describe("a newer agent", () => {
  test("whose reports have unknown fields everywhere is a node as any other, and what is unknown is kept nowhere", async () => {
    const { sandboxID } = await create();
    await pause(sandboxID);
    const second = await create();
    const answer = await send(nodeApi.heartbeat.path, withMore(await reportOf(cluster)));
    expect(answer.status, answer.text).toBe(200);
    expect(JSON.parse(answer.text)).toMatchObject({ stop: [], deleteSnapshots: [] });
    const [node] = (await cluster.ask("GET", "/nodes", admin)).body as { status: string }[];
    expect(node?.status).toBe("ready");
    expect(await cluster.database.stored()).not.toContain("a later version");
    expect((await connect(sandboxID)).status).toBe(201);
    expect((await read(second.sandboxID)).state).toBe("running");
    await expectNoProblems();
  });

  test("whose exits have unknown fields has ended sandboxes, and one that leaves out what is needed is refused by its name", async () => {
    const { sandboxID: sandboxId } = await create();
    const [executionId = ""] = cluster.agent.live.keys();
    cluster.agent.live.clear();
    const path = nodeApi.reportExits.path.replace("{nodeId}", cluster.agent.nodeId);
    const exit = { executionId, sandboxId, reason: "exited", exitCode: 1, at: Date.now() };
    const { at: _at, ...without } = exit;
    const refused = await send(path, { exits: [withMore(without)] });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining("'exits.0.at' is required") as string,
    ]);
    expect((await send(path, withMore({ exits: [exit] }))).status).toBe(204);
    expect(await eventsOf(sandboxId)).toEqual(["created", "killed"]);
    await expectNoProblems();
  });
});

describe("an older agent", () => {
  test("whose reports have nothing that came later runs, pauses, resumes and ends sandboxes", async () => {
    const { node, load, ...rest } = await reportOf(cluster);
    const { sandboxDisk: _disk, stored: _stored, ...older } = load;
    const capabilities = { memorySnapshots: true, diskLimit: false, detail: {} };
    const answer = await send(nodeApi.heartbeat.path, { ...rest, node: { ...node, capabilities }, load: older });
    expect(answer.status, answer.text).toBe(200);
    const { sandboxID } = await create();
    expect((await pause(sandboxID)).status).toBe(204);
    expect((await connect(sandboxID)).status).toBe(201);
    await expectNoProblems();
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(await eventsOf(sandboxID)).toEqual(["created", "paused", "resumed", "killed"]);
    await expectNoProblems();
  });

  test("that refuses an order with a field that it does not know costs that request, and nothing else", async () => {
    const kept = await create();
    cluster.agent.onStart = () => {
      throw new AppError("bad_request", "body field 'later' is not expected");
    };
    const refused = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.text).not.toContain("undefined");
    cluster.agent.onStart = (_start, run) => run();
    expect((await read(kept.sandboxID)).state).toBe("running");
    await create();
    await expectNoProblems();
  });

  test("that does not know a route is named with its version, and its sandboxes go on", async () => {
    const { sandboxID } = await create();
    cluster.agent.onExamine = () => {
      throw new AppError("not_found", "no such route");
    };
    const answer = await cluster.ask("GET", `/nodes/${cluster.agent.nodeId}/doctor`, admin);
    expect([answer.status, answer.text]).toEqual([
      503,
      expect.stringMatching(/is of version \S+, which has no report/) as string,
    ]);
    expect((await read(sandboxID)).state).toBe("running");
    await expectNoProblems();
  });
});
