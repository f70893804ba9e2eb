/** The agent's client for envd against answers that only a hostile program in the sandbox would give. */

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { httpEnvd } from "../../../../agent/containers/envd.ts";

async function envdThatAnswers(answer: string) {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(answer));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return httpEnvd((server.address() as AddressInfo).port);
}

const at = { address: "127.0.0.1", controlToken: "token" };

test.each([
  ["switches protocols", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: none\r\n\r\n"],
  ["ends before its answer", ""],
  ["ends in the middle of its answer", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"],
  ["does not speak HTTP", "hello\r\n"],
])("an envd that %s fails the call at once, so that no later call waits behind it", async (_, answer) => {
  const envd = await envdThatAnswers(answer);
  await expect(envd.logs(at, 0, new AbortController().signal)).rejects.toThrow("the sandbox did not answer /logs");
});

test.each([
  ["with a length", 'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"entries":[]}'],
  ["up to the end of the connection", 'HTTP/1.1 200 OK\r\n\r\n{"entries":[]}'],
])("an answer %s is read whole", async (_, answer) => {
  const envd = await envdThatAnswers(answer);
  expect(await envd.logs(at, 0, new AbortController().signal)).toEqual({ entries: [] });
});
