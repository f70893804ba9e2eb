/** How much the header rewriter holds while one side sends without end and the other does not read. */

import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ANSWERS, type Flood, flood, REQUESTS, SWITCHES } from "../../../support/peers/floods.ts";
import { type Held, startHeld } from "../../../support/peers/held.ts";
import { listening } from "../../../support/peers/listening.ts";

const HOST = "api.example.test";
/** The limit of what one connection may hold; a flood is three times as large. */
const MOST_HELD_BYTES = 32 * 1024 * 1024;
const REQUEST = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n`;
const UPGRADE = "Connection: Upgrade\r\nUpgrade: raw\r\n";

let program: Held;
let destination: Server;
let onConnection: (socket: Socket) => void = (socket) => void socket.pause();
const open = new Set<Socket>();
beforeAll(async () => {
  destination = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => open.delete(socket));
    onConnection(socket);
  });
  const port = await listening(destination);
  program = await startHeld(new URL("transform-program.ts", import.meta.url).pathname, HOST, String(port));
}, 60_000);
afterAll(async () => {
  await program.stop();
  destination.close();
});

async function openClient(): Promise<Socket> {
  const client = connect({ port: program.port, host: "127.0.0.1" });
  client.on("error", () => undefined);
  onTestFinished(() => {
    client.destroy();
    for (const socket of open) socket.destroy();
  });
  await once(client, "connect");
  return client;
}

async function expectBounded(send: () => Promise<unknown>): Promise<void> {
  const before = await program.bytes();
  await send();
  // The program frees unused memory in its own time.
  const held = async () => (await program.bytes()) - before;
  await expect.poll(held, { interval: 200 }).toBeLessThan(MOST_HELD_BYTES);
}

/** A client asks and reads nothing, and the destination answers without end. */
async function answered(answer: Flood, more: string): Promise<void> {
  const floods: Promise<number>[] = [];
  onConnection = (socket) => socket.once("data", () => floods.push(flood(socket, answer)));
  const client = await openClient();
  client.pause();
  await expectBounded(async () => {
    client.write(`${REQUEST}${more}\r\n`);
    await expect.poll(() => floods.length).toBeGreaterThan(0);
    await floods[0];
  });
}

test.each(ANSWERS)("little is held while a destination sends $name", (answer) => answered(answer, ""), 60_000);
test.each(SWITCHES)("little is held while a destination sends $name", (answer) => answered(answer, UPGRADE), 60_000);

test.each(REQUESTS)(
  "little is held while a sandbox sends $name",
  async ({ begin, again }) => {
    onConnection = (socket) => void socket.pause();
    const client = await openClient();
    const fill = (text: string) => text.replaceAll("{R}", `Host: ${HOST}\r\n`);
    await expectBounded(() => flood(client, { begin: fill(begin), again: fill(again) }));
  },
  60_000,
);

test("little is held while a sandbox sends data after a switch", async () => {
  onConnection = (socket) =>
    socket.once("data", () => {
      socket.pause();
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
    });
  const client = await openClient();
  client.write(`${REQUEST}${UPGRADE}\r\n`);
  await once(client, "data");
  await expectBounded(() => flood(client, { begin: "", again: "a" }));
}, 60_000);

test("a destination that sends endless informational answers is cut off, and the sandbox gets an error", async () => {
  const cut: Promise<unknown>[] = [];
  onConnection = (socket) =>
    socket.once("data", () => {
      cut.push(new Promise((resolve) => socket.once("close", resolve)));
      void flood(socket, { begin: "", again: "HTTP/1.1 102 Processing\r\n\r\n" });
    });
  const client = await openClient();
  let text = "";
  client.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  client.write(`${REQUEST}\r\n`);
  await expect.poll(() => text).toMatch(/HTTP\/1\.1 502 [^]*informational answers without end/);
  await Promise.all(cut);
}, 60_000);
