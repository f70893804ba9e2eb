import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:net";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { openTunnel } from "../../../../envd/http/tunnel.ts";
import { listening } from "../../../support/peers/listening.ts";

test("no connection to a server inside is opened for a caller that has left", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  onTestFinished(() => void server.close());
  const port = await listening(server);
  const request = { headers: { upgrade: "svc-tcp" }, url: `/connect?port=${port}`, socket: { localPort: 1 } };
  const caller = new PassThrough();
  caller.destroy();
  await once(caller, "close");
  const opened = openTunnel(request as unknown as IncomingMessage, caller, Buffer.alloc(0));
  await expect(opened).rejects.toMatchObject({ code: "nothing_listening" });
  expect(connections).toBe(0);
});
