import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ANSWERS, type Flood, flood, REQUESTS, SWITCHES } from "../../../support/peers/floods.ts";
import { type Held, startHeld } from "../../../support/peers/held.ts";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { type Backend, rawBackend } from "./front-door.ts";

/** The limit of what the proxies may hold for one connection; a flood is three times as large. */
const MOST_HELD_BYTES = 32 * 1024 * 1024;
const ADDRESS = `127.${1 + (process.pid % 250)}.255.1`;
const UPGRADE = "Connection: Upgrade\r\nUpgrade: raw\r\n";

let program: Held;
beforeAll(async () => {
  program = await startHeld(new URL("front-door-program.ts", import.meta.url).pathname, ADDRESS);
}, 60_000);
afterAll(() => program.stop());

describe.each(["straight", "proxied"])("with a container reached %s, little is held while", (sandboxId) => {
  const headers = (backend: Backend) =>
    `Host: 127.0.0.1\r\nE2b-Sandbox-Id: ${sandboxId}\r\nE2b-Sandbox-Port: ${backend.port}\r\n`;

  async function expectBounded(send: () => Promise<unknown>): Promise<void> {
    const before = await program.bytes();
    await send();
    // The program frees unused memory in its own time.
    const held = async () => (await program.bytes()) - before;
    await expect.poll(held, { timeout: 60_000, interval: 200 }).toBeLessThan(MOST_HELD_BYTES);
  }

  /** A client asks and reads nothing, and the server answers without end. */
  async function answered(answer: Flood, more: string): Promise<void> {
    const accepted: Socket[] = [];
    const floods: Promise<number>[] = [];
    const backend = await rawBackend(ADDRESS, (socket) => {
      accepted.push(socket);
      socket.once("data", () => floods.push(flood(socket, answer)));
    });
    const client = await RawClient.open(program.port);
    client.socket.pause();
    await expectBounded(async () => {
      client.send(`GET / HTTP/1.1\r\n${headers(backend)}${more}\r\n`);
      await expect.poll(() => floods.length, { timeout: 60_000 }).toBeGreaterThan(0);
      await floods[0];
    });
    client.destroy();
    await backend.close();
  }

  test.each(ANSWERS)("a server sends $name and its client does not read", (answer) => answered(answer, ""), 180_000);
  describe.each(["raw", "websocket"])("a client asks for %s and does not read, and", (protocol) => {
    test.each(SWITCHES)(
      "its server sends $name",
      (answer) => answered(answer, `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`),
      180_000,
    );
  });

  /** A server accepts connections and reads nothing from them. */
  test.each(REQUESTS)(
    "a client sends $name and its server does not read",
    async ({ begin, again }) => {
      const backend = await rawBackend(ADDRESS, (socket) => void socket.pause());
      const client = await RawClient.open(program.port);
      const fill = (text: string) => text.replaceAll("{R}", headers(backend));
      await expectBounded(() => flood(client.socket, { begin: fill(begin), again: fill(again) }));
      client.destroy();
      await backend.close();
    },
    180_000,
  );

  test("a client sends data after a switch and its server does not read", async () => {
    const backend = await rawBackend(ADDRESS, (socket) => {
      socket.once("data", () => {
        socket.pause();
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
      });
    });
    const client = await RawClient.open(program.port);
    await client.send(`GET / HTTP/1.1\r\n${headers(backend)}${UPGRADE}\r\n`).until((text) => text.includes("101"));
    await expectBounded(() => flood(client.socket, { begin: "", again: "a" }));
    client.destroy();
    await backend.close();
  }, 180_000);
});

test("a server that sends endless informational answers is cut off, and its client gets an error", async () => {
  const backend = await rawBackend(ADDRESS, (socket) => {
    socket.once("data", () => void flood(socket, { begin: "", again: "HTTP/1.1 102 Processing\r\n\r\n" }));
  });
  const client = await RawClient.open(program.port);
  const head = `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nE2b-Sandbox-Id: proxied\r\nE2b-Sandbox-Port: ${backend.port}\r\n`;
  expect(await client.send(`${head}\r\n`).until((text) => text.includes('"code":502'))).toContain("HTTP/1.1 502 ");
  await expect.poll(() => backend.open(), { timeout: 60_000 }).toBe(0);
  client.destroy();
  await backend.close();
});
