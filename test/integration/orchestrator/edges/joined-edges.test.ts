/** A machine joins as an edge: with TLS both ways to the orchestrator and to nodes, a token of its own kind, and its removal. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { openPeering } from "../../../../agent/joining/open-peering.ts";
import { edgeFiles } from "../../../../orchestrator/edge/program/membership.ts";
import { edgeMemberApi } from "../../../../shared/agent-api/joining/edge-join-shapes.ts";
import { connect } from "../../../../shared/http/client.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { factsOf } from "../../../../shared/tls/credentials.ts";
import { EDGE, ORCHESTRATOR } from "../../../../shared/tls/names.ts";
import { newPrivateKey, requestFor } from "../../../../shared/tls/request.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import {
  admin,
  joinCluster,
  newJoinToken,
  newMachine,
  nodesUrlOf,
  startMember,
} from "../../../support/cluster/members.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { startApartEdge } from "../../../support/edges/apart-edge.ts";
import { listening } from "../../../support/peers/listening.ts";

const log = createLog({ component: "test", level: "silent" });

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ edge: "within", agents: 0, config: { nodesPort: 0, edge: "off" } });
});
afterAll(() => cluster.stop());

// Every edge here has the same name.
beforeEach(async () => {
  for (const { id } of await listed()) await cluster.ask("DELETE", `/admin/edges/${id}`, admin);
});

async function newEdgeToken(): Promise<string> {
  const made = await cluster.ask("POST", "/admin/join-tokens", { ...admin, body: { kind: "edge" } });
  expect(made.status, made.text).toBe(201);
  return (made.body as { token: string }).token;
}

async function newStateDir(): Promise<string> {
  const stateDir = await mkdtemp(join(tmpdir(), "svc-edge-"));
  onTestFinished(() => rm(stateDir, { recursive: true, force: true }));
  return stateDir;
}

async function startJoined(joinToken: string | undefined, stateDir: string) {
  const edge = await startApartEdge({
    orchestratorUrl: nodesUrlOf(cluster),
    log,
    stateDir,
    ...(joinToken === undefined ? {} : { joinToken }),
  });
  onTestFinished(() => edge.stop());
  return edge;
}

const listed = async () => (await cluster.ask("GET", "/admin/edges", admin)).body as { id: string }[];

test("an edge that has joined carries requests to a node that has joined, and starts again without a token", async () => {
  await startMember(cluster, await joinCluster(cluster));
  const backend = createServer((_request, response) => response.end("from inside"));
  const port = await listening(backend);
  onTestFinished(() => void backend.close());
  const { sandboxID } = await sandboxesOn(() => cluster).create();
  const stateDir = await newStateDir();
  const headers = { "e2b-sandbox-id": sandboxID, "e2b-sandbox-port": String(port) };
  const first = await startJoined(await newEdgeToken(), stateDir);
  expect(await (await fetch(first.url, { headers })).text()).toBe("from inside");
  await first.stop();
  const second = await startJoined(undefined, stateDir);
  expect(await (await fetch(second.url, { headers })).text()).toBe("from inside");
  expect(factsOf(edgeFiles(stateDir).read()?.certificate ?? "").name).toBe(EDGE);
  expect((await listed()).map(({ id }) => id)).toEqual(["edge-1"]);
});

test("a token for a node makes no edge, and one for an edge makes no node", async () => {
  const asEdge = startJoined(await newJoinToken(cluster), await newStateDir());
  await expect(asEdge).rejects.toThrow("is for a node, and this machine would become an edge");
  const asNode = openPeering(
    { ...(await newMachine(cluster)), joinToken: await newEdgeToken() },
    { now: Date.now, log },
  );
  await expect(asNode).rejects.toThrow("is for an edge, and this machine would become a node");
});

test("another machine with the name of an edge is refused, and a used token says who has used it", async () => {
  const token = await newEdgeToken();
  const stateDir = await newStateDir();
  const edge = await startJoined(token, stateDir);
  await edge.stop();
  await expect(startJoined(token, await newStateDir())).rejects.toThrow("was used at");
  await expect(startJoined(await newEdgeToken(), await newStateDir())).rejects.toThrow(
    "edge 'edge-1' is on this platform with another key",
  );
});

test("an edge renews its certificate for its own key only, and a removed one gets neither certificate nor routes", async () => {
  const stateDir = await newStateDir();
  const edge = await startJoined(await newEdgeToken(), stateDir);
  await edge.stop();
  const current = edgeFiles(stateDir).read();
  if (current === undefined) throw new Error("the join has left nothing");
  const meeting = { credentials: { current }, expects: ORCHESTRATOR };
  const orchestrator = connect(edgeMemberApi, { url: nodesUrlOf(cluster), name: "the orchestrator", meeting });
  onTestFinished(() => orchestrator.close());
  const renew = async (key: string) => orchestrator.call.renewEdge({ body: { request: await requestFor(key) } });
  const renewed = await renew(current.key);
  expect(factsOf(renewed.certificate).name).toBe(EDGE);
  expect(factsOf(renewed.certificate).digest).toBe(factsOf(current.certificate).digest);
  await expect(renew(await newPrivateKey())).rejects.toThrow("another key than edge 'edge-1' has joined with");
  expect((await cluster.ask("DELETE", "/admin/edges/edge-1", admin)).status).toBe(204);
  expect((await cluster.ask("DELETE", "/admin/edges/edge-1", admin)).status).toBe(404);
  await expect(renew(current.key)).rejects.toThrow("not on this platform any more");
});

test("the port for nodes gives routes to no certificate but an edge's", async () => {
  const { peering } = await joinCluster(cluster);
  const node = connect(edgeMemberApi, { url: nodesUrlOf(cluster), name: "the orchestrator", meeting: peering.meeting });
  onTestFinished(() => node.close());
  const request = await requestFor(await newPrivateKey());
  await expect(node.call.renewEdge({ body: { request } })).rejects.toThrow("no certificate of an edge");
});
