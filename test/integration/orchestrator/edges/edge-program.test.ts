/** The edge as a program of its own beside the real orchestrator and a fake node with the real node proxy. */

import { createServer, type IncomingMessage, type RequestListener, request, type ServerResponse } from "node:http";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { edgeToken, nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import { fileSignature } from "../../../../shared/ids.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { startAgentProxy } from "../../../support/cluster/agent-proxy.ts";
import { type Cluster, NODE_KEY, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { startApartEdge } from "../../../support/edges/apart-edge.ts";
import { startEdgeProcess } from "../../../support/edges/edge-process.ts";
import { listening } from "../../../support/peers/listening.ts";

const log = createLog({ component: "test", level: "silent" });

/** A platform whose orchestrator is no edge, with one node whose sandboxes are on loopback. */
async function platform() {
  const held: { cluster?: Cluster } = {};
  const tokens = [nodeToken(NODE_KEY, "n1", "to node")];
  const proxy = await startAgentProxy({ nodeTokens: () => tokens }, () => held.cluster?.agent);
  onTestFinished(() => proxy.stop());
  const cluster = await startCluster({
    edge: "within",
    config: { edge: "off" },
    agent: { proxyUrl: proxy.url, facts: { machineId: "machine-of-n1" } },
  });
  held.cluster = cluster;
  onTestFinished(() => cluster.stop());
  return { cluster, sandboxes: sandboxesOn(() => cluster) };
}

async function backend(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  const port = await listening(server, "127.0.0.1", 0);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return port;
}

/** The program itself, as it is started on a machine. */
async function startProgram(settings: Readonly<Record<string, string>>): Promise<{ readonly url: string }> {
  const edge = await startEdgeProcess(settings);
  onTestFinished(() => edge.stop());
  return edge;
}

/** A way to the orchestrator that the test cuts, with all connections on it. */
async function openWay(url: string) {
  const state = { isOpen: true };
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    if (!state.isOpen) return void socket.destroy();
    const further = connect(Number(new URL(url).port), "127.0.0.1");
    for (const each of [socket, further]) {
      sockets.add(each);
      each.on("error", () => undefined);
      each.once("close", () => {
        sockets.delete(each);
        socket.destroy();
        further.destroy();
      });
    }
    socket.pipe(further).pipe(socket);
  });
  const port = await listening(server, "127.0.0.1", 0);
  const cut = () => {
    state.isOpen = false;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, cut, open: () => void (state.isOpen = true) };
}

const to = (sandboxId: string, port: number) => ({ "e2b-sandbox-id": sandboxId, "e2b-sandbox-port": String(port) });

/** A request whose answer goes on until the test ends it. */
async function openStream(url: string, headers: Readonly<Record<string, string>>) {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { headers }).once("response", resolve).once("error", reject).end();
  });
  const state = { text: "", isOver: false };
  answer.setEncoding("utf8");
  answer.on("data", (text: string) => void (state.text += text));
  answer.on("error", () => undefined);
  answer.once("close", () => void (state.isOver = true));
  return state;
}

test("a restart of the orchestrator cuts no stream, and requests go on meanwhile", async () => {
  const { cluster, sandboxes } = await platform();
  const open: ServerResponse[] = [];
  const port = await backend((incoming, response) => {
    if (incoming.url !== "/stream") return void response.end("from inside");
    response.write("begun ");
    open.push(response);
  });
  const edge = await startProgram({
    SVC_ORCHESTRATOR_URL: cluster.url,
    SVC_EDGE_TOKEN: edgeToken(NODE_KEY),
    SVC_EDGE_ASK_MS: "1000",
  });
  const { sandboxID } = await sandboxes.create();
  const stream = await openStream(`${edge.url}/stream`, to(sandboxID, port));
  await expect.poll(() => stream.text).toBe("begun ");
  await cluster.restart({}, async () => {
    const answer = await fetch(edge.url, { headers: to(sandboxID, port) });
    expect([answer.status, await answer.text()]).toEqual([200, "from inside"]);
    // Nobody can say what this one is.
    const unknown = await fetch(edge.url, { headers: to("i0123456789012345678", port) });
    expect([unknown.status, unknown.headers.get("retry-after")]).toEqual([503, "1"]);
  });
  open[0]?.write("goes on");
  await expect.poll(() => stream.text).toBe("begun goes on");
  // It follows again: a kill ends the stream before it is answered.
  expect(stream.isOver).toBe(false);
  await expect
    .poll(async () => (await fetch(edge.url, { headers: to("i0123456789012345678", port) })).status)
    .toBe(502);
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
  await expect.poll(() => stream.isOver).toBe(true);
});

test("no request gets in from the moment a kill or a pause is answered", async () => {
  const { cluster, sandboxes } = await platform();
  const port = await backend((_incoming, response) => void response.end("from inside"));
  const edge = await startApartEdge({
    orchestratorUrl: cluster.url,
    nodeKey: NODE_KEY,
    log,
    machineId: "machine-of-n1",
  });
  onTestFinished(() => edge.stop());
  // The containers stay, as those of a node that is slow to remove them: only the edge's own route can refuse.
  const reached = async (id: string) => (await fetch(edge.url, { headers: to(id, port) })).status;
  const killed = await sandboxes.create();
  expect(await reached(killed.sandboxID)).toBe(200);
  expect((await cluster.ask("DELETE", `/sandboxes/${killed.sandboxID}`)).status).toBe(204);
  expect(await reached(killed.sandboxID)).toBe(502);
  const paused = await sandboxes.create();
  expect(await reached(paused.sandboxID)).toBe(200);
  expect((await sandboxes.pause(paused.sandboxID)).status).toBe(204);
  expect(await reached(paused.sandboxID)).toBe(502);
});

test("a route that is out of date is refused by the node, and the edge looks the sandbox up again", async () => {
  const { cluster, sandboxes } = await platform();
  const port = await backend((_incoming, response) => void response.end("from inside"));
  const way = await openWay(cluster.url);
  const edge = await startApartEdge({ orchestratorUrl: way.url, nodeKey: NODE_KEY, log });
  onTestFinished(() => edge.stop());
  const { sandboxID } = await sandboxes.create();
  const visit = (how: RequestInit = {}) => fetch(edge.url, { ...how, headers: to(sandboxID, port) });
  expect((await visit()).status).toBe(200);
  way.cut();
  // Known to the node and still under way: it confirms this execution.
  expect((await visit()).status).toBe(200);
  expect((await sandboxes.pause(sandboxID)).status).toBe(204);
  expect((await sandboxes.connect(sandboxID)).status).toBe(201);
  // The node has another execution of the sandbox now, and nobody has told the edge.
  const again = await visit({ method: "POST", body: "sent once" });
  expect([again.status, again.headers.get("retry-after")]).toEqual([503, "1"]);
  const waiting = visit();
  way.open();
  const answer = await waiting;
  expect([answer.status, await answer.text()]).toEqual([200, "from inside"]);
});

test("a request wakes a paused sandbox, and waits for it", async () => {
  const { cluster, sandboxes } = await platform();
  const port = await backend((_incoming, response) => void response.end("from inside"));
  const edge = await startApartEdge({ orchestratorUrl: cluster.url, nodeKey: NODE_KEY, log });
  onTestFinished(() => edge.stop());
  const { sandboxID } = await sandboxes.paused({ autoPause: true, autoResume: { enabled: true } });
  const answer = await fetch(edge.url, { headers: to(sandboxID, port) });
  expect([answer.status, await answer.text()]).toEqual([200, "from inside"]);
  expect((await sandboxes.read(sandboxID)).state).toBe("running");
  const sleeps = await sandboxes.paused();
  expect((await fetch(edge.url, { headers: to(sleeps.sandboxID, port) })).status).toBe(502);
});

test("signed URLs, internal routes and wrong signatures are answered as within the orchestrator", async () => {
  const { cluster, sandboxes } = await platform();
  const edge = await startApartEdge({ orchestratorUrl: cluster.url, nodeKey: NODE_KEY, log });
  onTestFinished(() => edge.stop());
  const { envdAccessToken = "", sandboxID } = await sandboxes.create({ secure: true });
  const sign = (token: string) => {
    const signature = fileSignature({ path: "/a", operation: "read", username: "user", token, expiration: undefined });
    return `${edge.url}/files?${new URLSearchParams({ path: "/a", username: "user", signature }).toString()}`;
  };
  // No envd listens there: the port of the sandbox that the signature has named is closed.
  expect(await (await fetch(sign(envdAccessToken))).json()).toMatchObject({ sandboxId: sandboxID, port: 49983 });
  expect((await fetch(sign("of nobody"))).status).toBe(401);
  expect((await fetch(`${edge.url}/init`, { headers: to(sandboxID, 49_983) })).status).toBe(404);
});

test("the port for operators says what the edge follows", async () => {
  const { cluster } = await platform();
  const edge = await startApartEdge({ orchestratorUrl: cluster.url, nodeKey: NODE_KEY, log });
  onTestFinished(() => edge.stop());
  const ready = async () => {
    const answer = await fetch(`${edge.statusUrl}/readyz?verbose`);
    return [answer.status, await answer.json()];
  };
  // An edge that stands still for a second is not current for a moment.
  await expect
    .poll(ready)
    .toEqual([
      200,
      { ready: true, checks: { orchestrator: `ok (0 routes of ${cluster.url})`, edge: "ok", stopping: "ok" } },
    ]);
  const metrics = async () => (await fetch(`${edge.statusUrl}/metrics`)).text();
  await expect.poll(metrics).toContain("svc_edge_current 1");
});

test("an edge with a wrong token gets no routes", async () => {
  const { cluster } = await platform();
  const answer = await fetch(`${cluster.url}/internal/edge/routes`, {
    headers: { authorization: "Bearer edge.wrong" },
  });
  expect(answer.status).toBe(401);
  const nodes = nodeToken(NODE_KEY, "n1", "from node");
  const asNode = await fetch(`${cluster.url}/internal/edge/routes`, { headers: { authorization: `Bearer ${nodes}` } });
  expect(asNode.status).toBe(401);
});
