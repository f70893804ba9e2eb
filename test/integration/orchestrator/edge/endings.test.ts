import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { type Backend, type FrontDoor, httpBackend, openFrontDoor, routed, routing } from "./front-door.ts";

const KILLED = "The sandbox was killed or reached its end of life while the request was in flight.";

function envelope(payload: string, flags = 0): Buffer {
  const frame = Buffer.alloc(5 + payload.length);
  frame.writeUInt8(flags, 0);
  frame.writeUInt32BE(payload.length, 1);
  frame.write(payload, 5);
  return frame;
}

/** Splits a Connect stream into its envelopes, as [flags, text]. */
function envelopes(bytes: Buffer): [number, string][] {
  const found: [number, string][] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    found.push([bytes.readUInt8(at), bytes.toString("utf8", at + 5, at + 5 + length)]);
    at += 5 + length;
  }
  return found;
}

describe.each([
  { route: "straight", sameHost: true },
  { route: "through the node", sameHost: false },
])("when a sandbox ends, reached $route,", ({ sameHost }) => {
  let door: FrontDoor;
  let route: EdgeRoute;
  let backend: Backend;
  let streams: ServerResponse[];
  beforeEach(async () => {
    door = await openFrontDoor({ sameHost });
    route = door.add();
    streams = [];
    backend = await httpBackend(route.address, (request, response) => {
      streams.push(response);
      if (request.url === "/silent") return;
      response.writeHead(200, { "content-type": request.headers["content-type"] ?? "text/plain" });
      response.write(request.url === "/half" ? envelope("hello").subarray(0, 7) : envelope("hello"));
    });
  });
  afterEach(async () => {
    await door.stop();
    await backend.close();
  });

  const stream = async (path: string, type: string, to = route) => {
    const response = await fetch(`http://127.0.0.1:${door.port}${path}`, {
      method: "POST",
      headers: { ...routed(to, backend.port), "content-type": type },
      body: "x",
    });
    await expect.poll(() => streams.length).toBeGreaterThan(0);
    return response;
  };

  test.each([
    ["killed", KILLED],
    ["lost", KILLED],
    ["paused", "The sandbox was paused while the request was in flight."],
  ] as const)(
    "a Connect stream of one %s ends with an error frame before the removal is done",
    async (reason, message) => {
      const response = await stream("/", "application/connect+json");
      const body = response.arrayBuffer();
      await door.remove(route.sandboxId, reason);
      expect(envelopes(Buffer.from(await body))).toEqual([
        [0, "hello"],
        [2, JSON.stringify({ error: { code: "unavailable", message } })],
      ]);
      await expect.poll(() => door.edge.stats()).toMatchObject({ active: 0, upstream: 0 });
    },
  );

  test("a Connect stream in the middle of an envelope is cut", async () => {
    const response = await stream("/half", "application/connect+proto");
    const body = response.arrayBuffer();
    body.catch(() => undefined);
    await door.remove(route.sandboxId, "killed");
    await expect(body).rejects.toThrow();
  });

  test("any other stream is cut", async () => {
    const response = await stream("/", "text/event-stream");
    const body = response.text();
    body.catch(() => undefined);
    await door.remove(route.sandboxId, "killed");
    await expect(body).rejects.toThrow();
  });

  test("an open request is answered with 502, and so is the next request", async () => {
    const pending = fetch(`http://127.0.0.1:${door.port}/silent`, { headers: routed(route, backend.port) });
    await expect.poll(() => streams.length).toBe(1);
    await door.remove(route.sandboxId, "killed");
    const notFound = { sandboxId: route.sandboxId, message: "The sandbox was not found", code: 502 };
    const response = await pending;
    expect([response.status, await response.json()]).toEqual([502, notFound]);
    const next = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
    expect([next.status, await next.json()]).toEqual([502, notFound]);
  });

  test("its WebSockets are closed", async () => {
    const server = new WebSocketServer({ server: backend.server as import("node:http").Server });
    server.on("connection", (socket) => socket.on("error", () => undefined));
    const socket = new WebSocket(`ws://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
    await once(socket, "open");
    const closed = once(socket, "close");
    socket.on("error", () => undefined);
    await door.remove(route.sandboxId, "killed");
    expect((await closed)[0]).toBe(1006);
  });

  test("other sandboxes notice nothing", async () => {
    const other = door.add({ address: route.address });
    const response = await fetch(`http://127.0.0.1:${door.port}/`, {
      method: "POST",
      headers: { ...routed(other, backend.port), "content-type": "application/connect+json" },
      body: "x",
    });
    await expect.poll(() => streams.length).toBe(1);
    const body = response.arrayBuffer();
    await door.remove(route.sandboxId, "killed");
    streams[0]?.end(envelope("{}", 2));
    expect(envelopes(Buffer.from(await body))).toEqual([
      [0, "hello"],
      [2, "{}"],
    ]);
  });

  test("a stream whose connection broke before the end was reported still ends with the reason", async () => {
    const told = async () => {
      const broken = door.add({ address: route.address });
      streams.length = 0;
      const response = await stream("/", "application/connect+json", broken);
      const body = response.arrayBuffer();
      // The container dies first: its sockets are gone while the report is still on its way.
      streams[0]?.socket?.resetAndDestroy();
      await expect.poll(() => backend.open()).toBe(0);
      // A busy node needs as long for its report.
      await delay(1_000);
      await door.remove(broken.sandboxId, "killed");
      return envelopes(Buffer.from(await body)).at(-1)?.[1];
    };
    // On a busy machine the report may come later than two seconds after the end.
    await expect.poll(told, { timeout: 10_000 }).toContain(KILLED);
  });

  test("a slow client does not hold up the removal", async () => {
    const client = await RawClient.open(door.port);
    client.socket.pause();
    client.send(
      `POST / HTTP/1.1\r\n${routing(route, backend.port)}Content-Type: application/connect+json\r\nContent-Length: 1\r\n\r\nx`,
    );
    await expect.poll(() => streams.length).toBe(1);
    const big = envelope("x".repeat(1 << 20));
    for (let count = 0; count < 64; count++) streams[0]?.write(big);
    const started = performance.now();
    await door.remove(route.sandboxId, "killed");
    expect(performance.now() - started).toBeLessThan(30_000);
    client.destroy();
  });
});

test("a Connect stream whose connection breaks in a living sandbox ends with an error frame too", async () => {
  const door = await openFrontDoor();
  onTestFinished(() => door.stop());
  const route = door.add();
  const backend = await httpBackend(route.address, (_request, response) => {
    response.writeHead(200, { "content-type": "application/connect+json" });
    response.write(envelope("hello"), () => response.socket?.resetAndDestroy());
  });
  onTestFinished(() => backend.close());
  const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
  expect(envelopes(Buffer.from(await response.arrayBuffer()))).toEqual([
    [0, "hello"],
    [2, expect.stringContaining("The connection to the sandbox was lost while the request was in flight.")],
  ]);
});

test("streams to a sandbox that the node ended close, with the reason if it is known", async () => {
  const door = await openFrontDoor({ sameHost: false });
  onTestFinished(() => door.stop());
  const { address } = door.add();
  const backend = await httpBackend(address, (_request, response) => {
    response.writeHead(200, { "content-type": "application/connect+json" });
    response.write(envelope("hello"));
  });
  onTestFinished(() => backend.close());
  const told = async () => {
    const route = door.add({ address });
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
    const body = response.arrayBuffer();
    await door.removeOnNode(route.sandboxId);
    await door.remove(route.sandboxId, "killed");
    return envelopes(Buffer.from(await body)).at(-1)?.[1];
  };
  // The edge waits two seconds for the reason, and on a busy machine it may come later.
  await expect.poll(told).toContain(KILLED);
});

test("an edge that stops ends its streams with an error and closes its connections", async () => {
  const door = await openFrontDoor();
  const route = door.add();
  const backend = await httpBackend(route.address, (_request, response) => {
    response.writeHead(200, { "content-type": "application/connect+json" });
    response.write(envelope("hello"));
  });
  onTestFinished(() => backend.close());
  const idle = await RawClient.open(door.port);
  const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
  const body = response.arrayBuffer();
  await door.stop();
  expect(envelopes(Buffer.from(await body)).at(-1)?.[1]).toContain("unavailable");
  await expect.poll(() => idle.closed).toBe(true);
});

test("nothing is left open after thousands of requests, WebSockets and clients and servers that break off", async () => {
  const door = await openFrontDoor();
  onTestFinished(() => door.stop());
  const straight = door.add();
  const proxied = door.add({ sameHost: false });
  const backends: Backend[] = [];
  for (const route of [straight, proxied]) {
    const backend = await httpBackend(route.address, (request, response) => {
      if (request.url === "/reset") request.socket.resetAndDestroy();
      else if (request.url === "/cut") response.write("begun", () => request.socket.destroy());
      else if (request.url === "/hold") response.write("held");
      else response.end("ok");
    });
    const server = new WebSocketServer({ server: backend.server as import("node:http").Server });
    server.on("connection", (socket) => {
      socket.on("error", () => undefined);
      socket.on("message", (data) =>
        (data as Buffer).toString() === "die" ? socket.terminate() : socket.send(data as Buffer),
      );
    });
    backends.push(backend);
    onTestFinished(() => backend.close());
  }
  const targets = [
    { route: straight, port: backends[0]?.port ?? 0 },
    { route: proxied, port: backends[1]?.port ?? 0 },
  ];

  const client = async (index: number) => {
    const { route, port } = targets[index % 2] ?? { route: straight, port: 0 };
    const get = (path: string) => `GET ${path} HTTP/1.1\r\n${routing(route, port)}\r\n`;
    const one = await RawClient.open(door.port);
    for (let count = 1; count <= 48; count++) {
      await one.send(get("/")).until((text) => text.split("ok").length > count);
    }
    await one.send(get("/hold")).until((text) => text.includes("held"));
    if (index % 4 < 2) one.socket.resetAndDestroy();
    else one.destroy();
    for (const path of ["/reset", "/cut"]) {
      const broken = await RawClient.open(door.port);
      await broken.send(get(path)).until((text) => text.includes(path === "/cut" ? "begun" : "502"));
      broken.destroy();
    }
  };
  await Promise.all(Array.from({ length: 44 }, (_, index) => client(index)));

  const webSocket = async (index: number) => {
    const { route, port } = targets[index % 2] ?? { route: straight, port: 0 };
    const socket = new WebSocket(`ws://127.0.0.1:${door.port}/`, { headers: routed(route, port) });
    socket.on("error", () => undefined);
    await once(socket, "open");
    socket.send(index % 3 === 0 ? "die" : "hello");
    if (index % 3 !== 0) await once(socket, "message");
    if (index % 3 === 1) socket.terminate();
    else if (index % 3 === 2) socket.close();
    if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close");
  };
  for (let batch = 0; batch < 10; batch++) {
    await Promise.all(Array.from({ length: 20 }, (_, index) => webSocket(index)));
  }

  await expect.poll(() => door.edge.stats()).toMatchObject({ clients: 0, active: 0 });
  await door.remove(straight.sandboxId, "killed");
  await door.remove(proxied.sandboxId, "killed");
  await door.removeOnNode(straight.sandboxId);
  await door.removeOnNode(proxied.sandboxId);
  await expect.poll(() => door.edge.stats().upstream).toBe(0);
  await expect.poll(() => backends.map((backend) => backend.open())).toEqual([0, 0]);
}, 180_000);
