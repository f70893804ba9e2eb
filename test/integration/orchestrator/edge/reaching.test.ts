/**
 * The ways on which a request reaches its server: TLS, the tunnel to loopback, the node's proxy, auto-resume, limits of
 * connections.
 */

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { AutoResumeResult, EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { echoing } from "./answering.ts";
import { ENVD_PORT, type FrontDoor, httpBackend, openFrontDoor, rawBackend, routed, routing } from "./front-door.ts";

let door: FrontDoor;
let route: EdgeRoute;
beforeAll(async () => {
  door = await openFrontDoor();
  route = door.add();
});
afterAll(() => door.stop());

const url = (path = "/") => `http://127.0.0.1:${door.port}${path}`;

test.each([true, false])("a TLS server on an https port is reached, same host %s", async (sameHost) => {
  const { cert, key } = selfSigned();
  const tls = createTlsServer({ cert, key }, (request, response) => {
    response.end(`${request.url} ${(request.socket as import("node:tls").TLSSocket).servername || "no name"}`);
  });
  tls.listen(0, route.address);
  await once(tls, "listening");
  onTestFinished(() => {
    tls.closeAllConnections();
    tls.close();
  });
  const { port } = tls.address() as AddressInfo;
  const other = door.add({ address: route.address, sameHost, httpsPorts: [port] });
  expect(await (await fetch(url("/secret"), { headers: routed(other, port) })).text()).toBe("/secret localhost");
  const plain = door.add({ address: route.address, sameHost });
  expect((await fetch(url("/"), { headers: routed(plain, port) })).status).toBeGreaterThanOrEqual(400);
  const noTls = await echoing(route.address);
  const wrong = door.add({ address: route.address, sameHost, httpsPorts: [noTls.port] });
  expect((await fetch(url("/"), { headers: routed(wrong, noTls.port) })).status).toBe(502);
});

test.each([
  ["a server that speaks HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", /: it does not speak TLS \(network\.httpsPorts/],
  ["a server that closes", "", /: it closed the connection when TLS began \(network\.httpsPorts/],
  [
    "a server without HTTP/1.1",
    "\x15\x03\x03\0\x02\x02\x78",
    /: it offers no HTTP\/1\.1 over TLS \(network\.httpsPorts/,
  ],
])("%s on an https port is named, and not taken for a closed port", async (_name, bytes, message) => {
  const server = await rawBackend(route.address, (socket) => {
    socket.once("data", () => socket.end(bytes, "latin1"));
  });
  onTestFinished(() => server.close());
  for (const sameHost of [true, false]) {
    const wrong = door.add({ address: route.address, sameHost, httpsPorts: [server.port] });
    const answer = await fetch(url("/"), { headers: routed(wrong, server.port) });
    expect(await answer.json()).toMatchObject({
      code: 502,
      port: server.port,
      message: expect.stringMatching(message),
    });
  }
});

test("a sandbox that stops while TLS begins has the answer of its node, and the server's fault where that is not there", async () => {
  const server = await rawBackend(route.address, (socket) => void socket.once("data", () => socket.end()));
  onTestFinished(() => server.close());
  const httpsPorts = [server.port];
  const still = door.add({ address: route.address, sameHost: true, httpsPorts });
  const { executionId, address } = still;
  door.nodeRoutes.set(still.sandboxId, { executionId, address, controlToken: "c", held: "disk" });
  expect((await fetch(url(), { headers: routed(still, server.port) })).status).toBe(507);
  const alone = door.add({ address, sameHost: true, httpsPorts, proxyUrl: "http://127.0.0.1:1" });
  const answer = await fetch(url(), { headers: routed(alone, server.port) });
  expect(await answer.json()).toMatchObject({
    message: expect.stringContaining("it closed the connection when TLS began") as unknown,
  });
});

describe("a server on the sandbox's loopback", () => {
  test.each([true, false])("is reached through envd's tunnel, same host %s", async (sameHost) => {
    const inside = door.add({ sameHost });
    const asked: string[] = [];
    const tunnel = await httpBackend(inside.address, (_request, response) => response.writeHead(404).end(), ENVD_PORT);
    onTestFinished(() => tunnel.close());
    tunnel.server.on("upgrade", (request: import("node:http").IncomingMessage, socket: import("node:net").Socket) => {
      asked.push(`${request.method} ${request.url} ${String(request.headers["svc-node-token"])}`);
      if (request.url !== "/connect?port=8123") {
        socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        return;
      }
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: svc-tcp\r\n\r\n");
      socket.on("data", (chunk: Buffer) => {
        if (chunk.toString().endsWith("\r\n\r\n")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ninside");
      });
    });
    const control = door.nodeRoutes.get(inside.sandboxId)?.controlToken;
    const answers = [];
    for (let round = 0; round < 3; round++)
      answers.push(await (await fetch(url(), { headers: routed(inside, 8123) })).text());
    expect(answers).toEqual(["inside", "inside", "inside"]);
    expect(asked).toEqual([`POST /connect?port=8123 ${control}`]);
    const closed = await fetch(url(), { headers: routed(inside, 8124) });
    expect(await closed.json()).toMatchObject({ message: "The sandbox is running but port is not open" });
  });
});

describe("the node's proxy", () => {
  test("refuses requests without the node's token", async () => {
    const port = Number(new URL(door.nodeProxyUrl).port);
    for (const token of ["", "Svc-Node-Token: wrong\r\n"]) {
      const text = `GET / HTTP/1.1\r\nHost: x\r\n${token}Svc-Sandbox-Id: ${route.sandboxId}\r\nSvc-Execution-Id: ${route.executionId}\r\nSvc-Sandbox-Port: 80\r\nConnection: close\r\n\r\n`;
      expect(await ask(port, text)).toMatch(/^HTTP\/1.1 401 \r\nsvc-proxy-error: unauthorized\r\n/);
    }
  });

  test.each([
    ["the edge knows", { held: true }, {}],
    ["only the node knows", { sameHost: false }, { held: "disk" as const }],
  ])("a sandbox that is held for want of disk, as %s, answers 507 with the reason", async (_who, ofEdge, ofNode) => {
    const still = door.add(ofEdge);
    const { executionId, address } = still;
    door.nodeRoutes.set(still.sandboxId, { executionId, address, controlToken: "c", ...ofNode });
    const answer = await fetch(url(), { headers: routed(still, 8080) });
    expect(answer.status).toBe(507);
    expect(await answer.json()).toMatchObject({
      sandboxId: still.sandboxId,
      code: 507,
      message: expect.stringMatching(/stands still: its node's disk is short/) as unknown,
    });
  });

  test("answers 503 with the reason for a sandbox that is frozen because no orchestrator answers its node", async () => {
    const still = door.add({ sameHost: false });
    const { executionId, address } = still;
    door.nodeRoutes.set(still.sandboxId, { executionId, address, controlToken: "c", held: "lease" });
    const answer = await fetch(url(), { headers: routed(still, 49_983) });
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({
      sandboxId: still.sandboxId,
      code: 503,
      message: expect.stringMatching(/stands still: its node has lost touch with the platform/) as unknown,
    });
  });

  test("refuses an execution that it does not have, and the edge looks the sandbox up again", async () => {
    const stale = door.add({ sameHost: false });
    const backend = await httpBackend(stale.address, (_request, response) => response.end("new"));
    onTestFinished(() => backend.close());
    door.nodeRoutes.set(stale.sandboxId, { executionId: "newer", address: stale.address, controlToken: "c" });
    const gone = await fetch(url(), { headers: routed(stale, backend.port) });
    expect([gone.status, await gone.json()]).toMatchObject([502, { message: "The sandbox was not found" }]);

    let lookups = 0;
    const newer = { ...stale, executionId: "newer" };
    const original = door.routes.get.bind(door.routes);
    door.routes.get = (id) => (id === stale.sandboxId ? (lookups++ === 0 ? stale : newer) : original(id));
    onTestFinished(() => void (door.routes.get = original));
    expect(await (await fetch(url(), { headers: routed(stale, backend.port) })).text()).toBe("new");
  });

  test("makes a sandbox of another host unreachable when it does not listen, and one of this host is still reached", async () => {
    const nowhere = { proxyUrl: "http://127.0.0.1:1", address: route.address };
    const far = await fetch(url(), { headers: routed(door.add({ ...nowhere, sameHost: false }), 80) });
    expect([far.status, await far.json()]).toMatchObject([
      503,
      { message: "The sandbox cannot be reached at the moment" },
    ]);
    const backend = await echoing(route.address);
    const near = door.add({ ...nowhere, sameHost: true });
    expect((await fetch(url(), { headers: routed(near, backend.port) })).status).toBe(200);
    const closed = await fetch(url(), { headers: routed(near, 1) });
    expect(await closed.json()).toMatchObject({ message: "The sandbox is running but port is not open" });
  });
});

test("connections beyond a sandbox's limit are refused, WebSockets too, and closed ones no longer count", async () => {
  const small = await openFrontDoor({ maxConnectionsPerSandbox: 2 });
  onTestFinished(() => small.stop());
  const one = small.add();
  const backend = await httpBackend(one.address, (request, response) => {
    if (request.url === "/hold") response.write("held");
    else response.end("ok");
  });
  onTestFinished(() => backend.close());
  const holders = [];
  backend.server.on("upgrade", (_request, socket: import("node:net").Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nheld");
  });
  for (const more of ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n"]) {
    const client = await RawClient.open(small.port);
    const head = `GET /hold HTTP/1.1\r\n${routing(one, backend.port)}${more}\r\n`;
    await client.send(head).until((text) => text.includes("held"));
    holders.push(client);
  }
  const ok = () => fetch(`http://127.0.0.1:${small.port}/`, { headers: routed(one, backend.port) });
  const refused = await ok();
  expect([refused.status, await refused.json()]).toEqual([
    429,
    { sandboxId: one.sandboxId, message: "Too many connections to the sandbox", connectionLimit: 2, code: 429 },
  ]);
  holders[0]?.destroy();
  await expect.poll(async () => (await ok()).status).toBe(200);
  holders[1]?.destroy();
});

test.each<[AutoResumeResult | "running", number, string]>([
  ["running", 200, "resumed"],
  [{ is: "not_found" }, 502, "The sandbox was not found"],
  [{ is: "paused" }, 502, "The sandbox is paused: connect to resume it"],
  [{ is: "denied", message: "wrong token" }, 403, "wrong token"],
  [{ is: "transitioning" }, 409, "The sandbox is still transitioning"],
  [{ is: "limited", message: "too many" }, 429, "too many"],
])("a request for a paused sandbox whose auto-resume gives %o is answered with %i", async (result, status, text) => {
  const asked: unknown[] = [];
  const sleepy = await openFrontDoor({
    autoResume: async (sandboxId, port, tokens) => {
      asked.push([sandboxId, port, tokens]);
      return result === "running" ? { is: "running", route: { ...paused, state: "running" } } : result;
    },
  });
  onTestFinished(() => sleepy.stop());
  const paused = sleepy.add({ state: "paused" });
  const received: string[] = [];
  const backend = await httpBackend(paused.address, (request, response) => {
    received.push(...Object.keys(request.headers));
    response.end("resumed");
  });
  onTestFinished(() => backend.close());
  const tokens = { "e2b-traffic-access-token": "wrong", "svc-traffic-access-token": "t", "x-access-token": "e" };
  const headers = { ...routed(paused, backend.port), ...tokens };
  const response = await fetch(`http://127.0.0.1:${sleepy.port}/`, { headers });
  expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(text)]);
  expect(asked).toEqual([
    [paused.sandboxId, backend.port, { trafficAccessTokens: ["wrong", "t"], envdAccessToken: "e" }],
  ]);
  expect(received.filter((name) => name.includes("traffic"))).toEqual([]);
});

test("a request that never ends its head does not stop the others", async () => {
  const slow = await RawClient.open(door.port);
  slow.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
  const backend = await echoing(route.address);
  expect((await fetch(url(), { headers: routed(route, backend.port) })).status).toBe(200);
  slow.send(
    `y\r\nE2b-Sandbox-Id: ${route.sandboxId}\r\nE2b-Sandbox-Port: ${backend.port}\r\nConnection: close\r\n\r\n`,
  );
  expect(await slow.toEnd()).toMatch(/^HTTP\/1.1 200/);
});

test("a client may send requests for different sandboxes over one kept connection", async () => {
  const other = door.add();
  const [mine, theirs] = [
    await echoing(route.address),
    await httpBackend(other.address, (_request, response) => response.end("theirs")),
  ];
  onTestFinished(() => theirs.close());
  const client = await RawClient.open(door.port);
  await client.send(`GET / HTTP/1.1\r\n${routing(route, mine.port)}\r\n`).until((text) => text.endsWith("GET"));
  await client.send(`GET / HTTP/1.1\r\n${routing(other, theirs.port)}\r\n`).until((text) => text.endsWith("theirs"));
  const { port } = new URL(url());
  expect(port).toBe(String(door.port));
  await client
    .send(`POST / HTTP/1.1\r\n${routing(route, mine.port)}Content-Length: 1\r\n\r\nx`)
    .until((text) => text.endsWith("POST"));
  client.destroy();
});

function selfSigned(): { cert: string; key: string } {
  const directory = mkdtempSync(join(tmpdir(), "edge-tls-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      key,
      "-out",
      cert,
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
    ],
    { stdio: "ignore" },
  );
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}
