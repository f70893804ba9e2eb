import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { RunStream } from "../../../../interpreter/http/run-stream.ts";

test("a run whose client left while its context was started does not begin, and waits for nothing", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
  client.destroy();
  await once(response, "close");
  const stream = new RunStream(response);
  expect(stream.left.aborted).toBe(true);
  await stream.event({ type: "output", stream: "stdout", text: "x" });
  stream.end();
});
