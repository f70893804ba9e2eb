/**
 * The part of a body that a destination leaves unread is not taken for a request: the rewriter looks at every request before
 * it sends it.
 */

import { expect, onTestFinished, test } from "vitest";
import { dial, listenTransformed } from "../../../support/peers/transformed.ts";
import { carelessServer, METHODS, withHidden } from "../../../support/peers/unread-bodies.ts";

const HOST = "api.example.test";
const HEADERS = `Host: ${HOST}\r\n`;
const TRIES = 40;

test("a request hidden in a body that the destination leaves unread is not served", async () => {
  const server = await carelessServer("127.0.0.1");
  onTestFinished(() => server.stop());
  const { port } = await listenTransformed({
    hostname: HOST,
    tls: false,
    to: server.port,
    port: 80,
    headers: { "X-Rule": "1" },
  });
  // One connection of the sandbox has one connection to the destination, which carries both requests.
  const two = async (method: string) => {
    const socket = await dial(port);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const answers = () => text.split("\r\n\r\nok").length - 1;
    socket.write(withHidden(method, "/attack", HEADERS));
    await expect.poll(answers, { interval: 10 }).toBe(1);
    socket.write(`GET /victim HTTP/1.1\r\n${HEADERS}\r\n`);
    await expect.poll(answers, { interval: 10 }).toBe(2);
    socket.destroy();
  };
  for (let count = 0; count < TRIES; count++) await two(METHODS[count % METHODS.length] ?? "GET");
  const victims = () => server.served.filter((line) => line === "GET /victim").length;
  await expect.poll(victims).toBe(TRIES);
  expect(server.served.filter((line) => line.includes("hidden"))).toEqual([]);
});
