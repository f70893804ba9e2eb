/** The token of one node: it opens reports of that node, and nothing of another node. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Direction, nodeOfToken, nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { newExecutionId } from "../../../../shared/ids.ts";
import { type Cluster, NODE_KEY, startCluster } from "../../../support/cluster/cluster.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agents: 2 });
});
afterAll(() => cluster.stop());

function as(nodeId: string, direction: Direction = "from node") {
  return { key: null, headers: { authorization: `Bearer ${nodeToken(NODE_KEY, nodeId, direction)}` } };
}

/** A report as this node would send it, with nothing running. */
function heartbeat(nodeId: string, url = "http://127.0.0.1:9") {
  return fakeHeartbeat({
    nodeId,
    url,
    serviceInstanceId: newExecutionId(),
    address: "127.0.0.1",
    // The node reports that it is full, so the orchestrator places nothing on it.
    options: { facts: { maxSandboxes: 1 }, load: { sandboxCount: 1 } },
    live: [],
    snapshots: [],
  });
}

describe("the token of a node", () => {
  test("reports for that node only", async () => {
    const report = (as: object, nodeId: string) =>
      cluster.ask("POST", "/internal/nodes/heartbeat", { ...as, body: heartbeat(nodeId) });
    const exits = (as: object, nodeId: string) =>
      cluster.ask("POST", `/internal/nodes/${nodeId}/exits`, { ...as, body: { exits: [] } });
    expect((await report(as("n9"), "n9")).status).toBe(200);
    expect((await exits(as("n9"), "n9")).status).toBe(204);
    expect((await report(as("n9"), "n1")).body).toMatchObject({ code: 403, error_code: "forbidden" });
    expect((await exits(as("n9"), "n1")).body).toMatchObject({ code: 403, error_code: "forbidden" });
    // A stolen token cannot change the URL at which the orchestrator reaches another node.
    expect(cluster.agents.map(({ nodeId }) => nodeId)).toEqual(["n1", "n2"]);
    expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(201);
  });

  test("ends no sandbox of another node that it reports as its own", async () => {
    const created = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 600 } });
    const { sandboxID } = created.body as { sandboxID: string };
    const home = cluster.agents.find(({ live }) => [...live.values()].some(({ body }) => body.sandboxId === sandboxID));
    const [executionId = ""] = [...(home?.live ?? [])].find(([, { body }]) => body.sandboxId === sandboxID) ?? [];
    const exits = [{ executionId, sandboxId: sandboxID, reason: "exited", at: Date.now() }];
    const state = async () => ((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body as SandboxDetail).state;
    expect((await cluster.ask("POST", "/internal/nodes/n9/exits", { ...as("n9"), body: { exits } })).status).toBe(204);
    const body = { ...heartbeat("n9"), exits };
    expect((await cluster.ask("POST", "/internal/nodes/heartbeat", { ...as("n9"), body })).status).toBe(200);
    expect(await state()).toBe("running");
    const own = home?.nodeId ?? "";
    const path = `/internal/nodes/${own}/exits`;
    expect((await cluster.ask("POST", path, { ...as(own), body: { exits } })).status).toBe(204);
    expect(await state()).toBeUndefined();
  });

  test("that the orchestrator shows opens nothing here, nor does a key of users or operators", async () => {
    const body = heartbeat("n1");
    for (const wrong of [
      as("n1", "to node"),
      {},
      { key: null },
      { key: null, headers: { authorization: `Bearer ${NODE_KEY}` } },
    ]) {
      expect((await cluster.ask("POST", "/internal/nodes/heartbeat", { ...wrong, body })).status).toBe(401);
    }
    for (const path of ["/v2/sandboxes", "/nodes", "/admin/projects"]) {
      expect((await cluster.ask("GET", path, as("n1"))).status).toBe(401);
    }
  });

  test("differs for each node, direction and key, and no other text is accepted", () => {
    const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/);
    const direction = fc.constantFrom<Direction>("to node", "from node");
    const other = (given: Direction): Direction => (given === "to node" ? "from node" : "to node");
    fc.assert(
      fc.property(fc.tuple(id, id), direction, fc.nat(), ([one, two], way, at) => {
        const token = nodeToken("key 1", one, way);
        expect(nodeOfToken("key 1", token, way)).toBe(one);
        expect(nodeOfToken("key 1", token, other(way))).toBeUndefined();
        expect(nodeOfToken("key 2", token, way)).toBeUndefined();
        const proof = token.slice(token.indexOf(":") + 1);
        if (two !== one) expect(nodeOfToken("key 1", `${two}:${proof}`, way)).toBeUndefined();
        const where = at % token.length;
        const changed = `${token.slice(0, where)}${token[where] === "A" ? "B" : "A"}${token.slice(where + 1)}`;
        expect(nodeOfToken("key 1", changed, way)).toBeUndefined();
      }),
    );
    for (const none of ["", ":", one(), "n1"]) expect(nodeOfToken("key 1", none, "from node")).toBeUndefined();
  });
});

test("a node that refuses the orchestrator's token is a fault of the platform, and never 401 for the user", async () => {
  const alone = await startCluster({ agents: 0 });
  onTestFinished(() => alone.stop());
  const refusing = createServer((request, response) => {
    request.resume();
    response.writeHead(401, { "content-type": "application/json" });
    response.end(JSON.stringify({ code: 401, message: "the token is wrong", error_code: "unauthorized" }));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void refusing.close());
  await expect.poll(() => refusing.listening).toBe(true);
  const { port } = refusing.address() as AddressInfo;
  const report = fakeHeartbeat({
    nodeId: "n1",
    url: `http://127.0.0.1:${port}`,
    serviceInstanceId: newExecutionId(),
    address: "127.0.0.1",
    options: {},
    live: [],
    snapshots: [],
  });
  expect((await alone.ask("POST", "/internal/nodes/heartbeat", { ...as("n1"), body: report })).status).toBe(200);
  const created = await alone.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
  expect(created.status).toBeGreaterThanOrEqual(500);
  expect(JSON.stringify(created.body)).toContain("node n1 refuses the token of the platform's own program");
});

function one(): string {
  return nodeToken("key 1", "n1", "from node").slice(0, -1);
}
