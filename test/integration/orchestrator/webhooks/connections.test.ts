/** Connections to receivers: one is kept for the next delivery of its webhook, and one that ended fails no delivery. */

import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { startReceiver } from "../../../support/webhooks/receiver.ts";
import { webhookWorld } from "../../../support/webhooks/world.ts";

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Calls back for each request, with its number on its connection. Requests arrive in one piece each. */
async function rawReceiver(onRequest: (socket: Socket, connection: number, request: number) => void): Promise<string> {
  let connections = 0;
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    const connection = ++connections;
    let requests = 0;
    open.add(socket);
    socket.on("error", () => undefined);
    let seen = "";
    socket.on("data", (data) => {
      seen += data.toString("latin1");
      const [head = "", body] = seen.split("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (body === undefined || body.length < length) return;
      seen = "";
      onRequest(socket, connection, ++requests);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((closed) => server.close(closed));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return `http://127.0.0.1:${address.port}/`;
}

test("deliveries of one webhook share a connection, and those of another webhook do not get it", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver();
  const ports = new Map<string, Set<number | undefined>>();
  receiver.answer((response, { headers }, { socket }) => {
    const id = String(headers["svc-webhook-id"]);
    ports.set(id, (ports.get(id) ?? new Set()).add(socket.remotePort));
    response.end();
  });
  const ids = [(await world.webhook(receiver.url)).id, (await world.webhook(receiver.url)).id];
  for (let i = 0; i < 5; i++) {
    await world.event("i1");
    await delivering.settle();
  }
  const [mine = new Set(), other = new Set()] = ids.map((id) => ports.get(id));
  expect([receiver.got.length, mine.size, other.size]).toEqual([10, 1, 1]);
  expect(mine).not.toEqual(other);
});

test("a delivery on a connection that its receiver ends is sent again at once on a new one", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const seen: string[] = [];
  const url = await rawReceiver((socket, connection, request) => {
    seen.push(`${connection}.${request}`);
    if (request === 1) socket.write(ANSWER);
    else socket.destroy();
  });
  const webhook = await world.webhook(url);
  for (let i = 0; i < 2; i++) {
    await world.event("i1");
    await delivering.settle();
  }
  expect(seen).toEqual(["1.1", "1.2", "2.1"]);
  expect(await world.deliveries(webhook.id)).toMatchObject([
    { status: "delivered", attempts: 1 },
    { status: "delivered", attempts: 1 },
  ]);
});

test("an answer that nobody asked for ends its connection, and decides no later delivery", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const seen: string[] = [];
  const url = await rawReceiver((socket, connection, request) => {
    seen.push(`${connection}.${request}`);
    socket.write(connection === 1 ? ANSWER + ANSWER : "HTTP/1.1 500 Bad\r\ncontent-length: 0\r\n\r\n");
  });
  const webhook = await world.webhook(url);
  for (let i = 0; i < 2; i++) {
    await world.event("i1");
    await delivering.settle();
  }
  expect(seen).toEqual(["1.1", "2.1"]);
  expect(await world.deliveries(webhook.id)).toMatchObject([{ http_status: 500 }, { http_status: 200 }]);
});
