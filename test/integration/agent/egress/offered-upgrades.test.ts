/** Clients that offer another protocol with every request of a connection, as Apache HttpClient does. */

import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { transform } from "../../../../agent/egress/rewrite/transform.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: host.test\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n";

test("a request that offers another protocol leaves nothing behind on its connection", async () => {
  const destination = createHttpServer((_request, response) => response.end("hello")).listen(0, "127.0.0.1");
  const door = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, "127.0.0.1");
  await Promise.all([once(destination, "listening"), once(door, "listening")]);
  const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;
  const client = connect(portOf(door), "127.0.0.1");
  const [socket] = (await once(door, "connection")) as [Socket];
  const carried = transform(socket, {
    hostname: "host.test",
    port: 80,
    tls: false,
    headers: {},
    first: Buffer.alloc(0),
    async connect() {
      const upstream = connect(portOf(destination), "127.0.0.1");
      await once(upstream, "connect");
      return upstream;
    },
    resolve: () => Promise.resolve({ problem: "none" }),
    authority: { certificate: "", key: "" },
    trust: createSecureContext(),
  });
  onTestFinished(async () => {
    client.destroy();
    carried.destroy();
    destination.closeAllConnections();
    destination.close();
    door.close();
    await carried.closed;
  });
  const ask = async () => {
    client.write(REQUEST);
    let text = "";
    while (!text.endsWith("hello")) text += String((await once(client, "data"))[0]);
    return text;
  };
  expect(await ask()).toContain("200 OK");
  const before = socket.listenerCount("close");
  for (let times = 0; times < 20; times += 1) await ask();
  expect(socket.listenerCount("close")).toBe(before);
});
