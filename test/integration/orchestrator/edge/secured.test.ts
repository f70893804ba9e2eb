/** The edge and a node's proxy on another machine: TLS both ways, for requests, streams and upgrades. */

import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { createLog } from "../../../../shared/program/log.ts";
import { openFront } from "../../../../shared/proxy/front/front.ts";
import { openSite } from "../../../../shared/tls/site/files.ts";
import { type TestPlatform, testPlatform } from "../../../support/tls/platform.ts";
import { testSite } from "../../../support/tls/site.ts";
import { echoing } from "./answering.ts";
import { type FrontDoor, httpBackend, openFrontDoor, routed } from "./front-door.ts";

let platform: TestPlatform;
let door: FrontDoor;
beforeAll(async () => {
  platform = await testPlatform();
  const tls = { door: await platform.nodeDoor("node"), meeting: await platform.toNode("node") };
  door = await openFrontDoor({ sameHost: false, tls });
});
afterAll(() => door.stop());

const url = (path = "/") => `http://127.0.0.1:${door.port}${path}`;

test("a request and its body pass through a node's proxy that takes TLS only", async () => {
  expect(door.nodeProxyUrl).toMatch(/^https:/);
  const route = door.add();
  const backend = await httpBackend(route.address, (request, response) => void request.pipe(response));
  onTestFinished(() => backend.close());
  const body = "x".repeat(300_000);
  for (let round = 0; round < 3; round++) {
    const answer = await fetch(url("/echo"), { method: "POST", body, headers: routed(route, backend.port) });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe(body);
  }
});

test("a WebSocket passes through it in both directions", async () => {
  const route = door.add();
  const backend = await httpBackend(route.address, (_request, response) => response.end());
  const sockets = new WebSocketServer({ server: backend.server as import("node:http").Server });
  sockets.on("connection", (socket) => socket.on("message", (data: Buffer) => socket.send(`back ${data.toString()}`)));
  onTestFinished(async () => {
    sockets.close();
    await backend.close();
  });
  const client = new WebSocket(url().replace("http", "ws"), { headers: routed(route, backend.port) });
  await once(client, "open");
  client.send("there");
  const [data] = (await once(client, "message")) as [Buffer];
  expect(String(data)).toBe("back there");
  client.close();
  await once(client, "close");
});

test("a sandbox of a node whose proxy shows another node's certificate is not reached", async () => {
  const other = await openFrontDoor({
    sameHost: false,
    tls: { door: await platform.nodeDoor("other"), meeting: await platform.toNode("node") },
  });
  onTestFinished(() => other.stop());
  const route = other.add();
  const backend = await echoing(route.address);
  const answer = await fetch(`http://127.0.0.1:${other.port}/`, { headers: routed(route, backend.port) });
  expect(answer.status).toBe(503);
  expect(backend.accepted()).toBe(0);
});

test("an https address of a node's proxy that speaks no TLS gets no request in clear", async () => {
  const received: string[] = [];
  const plain = createHttpServer((request, response) => {
    received.push(JSON.stringify(request.headers));
    response.end("in clear");
  });
  plain.listen(0, "127.0.0.1");
  await once(plain, "listening");
  onTestFinished(() => void plain.close());
  const { port } = plain.address() as AddressInfo;
  const without = await openFrontDoor({ sameHost: false });
  onTestFinished(() => without.stop());
  for (const at of [door, without]) {
    const route = at.add({ proxyUrl: `https://127.0.0.1:${port}` });
    const answer = await fetch(`http://127.0.0.1:${at.port}/`, { headers: routed(route, 8000) });
    expect(answer.status).toBe(503);
  }
  expect(received).toEqual([]);
});

/** The port with TLS for clients, in front of the edge. */
async function secureFront() {
  const files = await testSite("sbx.example");
  const log = createLog({ component: "test", level: "silent" });
  const site = await openSite({ ...files, domain: "sbx.example", now: Date.now, log, lookEveryMs: 1_000 });
  const front = await openFront({
    host: "127.0.0.1",
    port: 0,
    shown: site,
    admits: () => true,
    serve: (_name, connection) => door.edge.accept(connection),
  });
  onTestFinished(async () => {
    front.destroy();
    await front.close();
    await site.stop();
    files.remove();
  });
  return { port: front.port, ca: files.authority.certificate };
}

test("a server learns of its client's TLS, whatever the client says, and envd does not", async () => {
  const { port, ca } = await secureFront();
  const route = door.add();
  const backend = await echoing(route.address);
  const envd = await httpBackend(
    route.address,
    (asked, response) => response.end(JSON.stringify(asked.headers)),
    49_983,
  );
  onTestFinished(() => envd.close());
  const host = `${backend.port}-${route.sandboxId}.sbx.example`;
  const tls = { ca, servername: host };
  const call = request({
    ...tls,
    host: "127.0.0.1",
    port,
    headers: { host, "x-forwarded-proto": "http" },
    agent: false,
  });
  const [answer] = (await once(call.end(), "response")) as [IncomingMessage];
  answer.resume();
  expect(JSON.parse(String(answer.headers["x-seen"]))).toMatchObject({ host, "x-forwarded-proto": "https" });
  const session = connect(`https://127.0.0.1:${port}`, tls);
  onTestFinished(() => session.destroy());
  const seen = async (authority: string) => {
    const stream = session.request({ ":authority": authority });
    const [fields] = (await once(stream, "response")) as [Record<string, string>];
    let text = "";
    for await (const chunk of stream as AsyncIterable<Buffer>) text += chunk.toString();
    return JSON.parse(fields["x-seen"] ?? text) as Record<string, string>;
  };
  expect(await seen(host)).toMatchObject({ host, "x-forwarded-proto": "https" });
  expect(await seen(`49983-${route.sandboxId}.sbx.example`)).not.toHaveProperty("x-forwarded-proto");
  const plain = await fetch(url(), { headers: { ...routed(route, backend.port), "x-forwarded-proto": "https" } });
  expect(JSON.parse(plain.headers.get("x-seen") ?? "")).toMatchObject({ "x-forwarded-proto": "https" });
  const without = await fetch(url(), { headers: routed(route, backend.port) });
  expect(JSON.parse(without.headers.get("x-seen") ?? "")).not.toHaveProperty("x-forwarded-proto");
});
