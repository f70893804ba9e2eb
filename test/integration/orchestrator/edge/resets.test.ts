/** A client may reset its connection at any moment: the programs that serve it go on. They run in a process of their own. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Held, startHeld } from "../../../support/peers/held.ts";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { rawBackend } from "./front-door.ts";

const ADDRESS = `127.${1 + (process.pid % 250)}.255.2`;
/** Nothing listens there. */
const CLOSED_PORT = 9;
const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";
const LENGTH = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";

let program: Held;
beforeAll(async () => {
  program = await startHeld(new URL("front-door-program.ts", import.meta.url).pathname, ADDRESS);
}, 60_000);
afterAll(() => program.stop());

const to = (sandboxId: string, port: number) =>
  `Host: 127.0.0.1\r\nE2b-Sandbox-Id: ${sandboxId}\r\nE2b-Sandbox-Port: ${port}\r\n`;
const upgrade = (protocol: string) => `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`;
const asked =
  (sandboxId: string, more = "") =>
  (port: number) =>
    `GET / HTTP/1.1\r\n${to(sandboxId, port)}${more}\r\n`;

const WAYS = ["straight", "proxied"];
const REQUESTS: readonly [name: string, request: (port: number) => string][] = [
  ...WAYS.flatMap((way): [string, (port: number) => string][] => [
    [`a plain request, ${way}`, asked(way)],
    [`a request to switch, ${way}`, asked(way, upgrade("raw"))],
    [`a request for a WebSocket, ${way}`, asked(way, upgrade("websocket"))],
    [`a request to switch with bytes behind it, ${way}`, (port) => `${asked(way, upgrade("raw"))(port)}behind`],
    [`a request to switch without its body, ${way}`, asked(way, `${upgrade("raw")}Content-Length: 9\r\n`)],
  ]),
  ["a request to switch, of an unknown sandbox", asked("unknown", upgrade("raw"))],
  ["a request for a WebSocket, of an unknown sandbox", asked("unknown", upgrade("websocket"))],
  ["CONNECT", () => "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["no HTTP", () => "SSH-2.0-x\r\n\r\n"],
];

/** What the server does with its connection. */
const SERVERS: readonly [name: string, answer: string | undefined][] = [
  ["is not there", undefined],
  ["says nothing", ""],
  ["switches", SWITCHED],
  ["answers by half", LENGTH],
];

test.each(REQUESTS)("the programs survive the reset of a client that has sent %s", async (_name, request) => {
  for (const [, answer] of SERVERS) {
    const backend = await rawBackend(ADDRESS, (socket) => {
      socket.once("data", () => void (answer !== "" && socket.write(answer ?? "")));
    });
    // Before an answer can have come, and when there has been time for one.
    for (const waitMs of [0, 5, 50]) {
      const client = await RawClient.open(program.port, true);
      client.send(request(answer === undefined ? CLOSED_PORT : backend.port));
      await Promise.race([client.until((text) => text !== ""), new Promise((resolve) => setTimeout(resolve, waitMs))]);
      client.socket.resetAndDestroy();
    }
    await backend.close();
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await program.bytes()).toBeGreaterThan(0);
});
