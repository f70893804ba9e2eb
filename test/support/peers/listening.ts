/** Servers of a test on a free port. */

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Resolves, once it listens, to the port: a free one unless the test has its own. */
export async function listening(server: Server, host = "127.0.0.1", port = 0): Promise<number> {
  const listens = once(server, "listening");
  server.listen(port, host);
  await listens;
  return portOf(server);
}

/** The kernel gives these ports to no connection, and to no server that asks for any port. */
const OWN_PORTS = { first: 20_000, count: 12_000 };

/**
 * Finds a port that is free at the moment, for a program that needs its port beforehand. Other tests of the machine do not get
 * it meanwhile by chance.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const probe = createServer();
    const port = await listening(probe, "127.0.0.1", OWN_PORTS.first + randomInt(OWN_PORTS.count)).catch(
      () => undefined,
    );
    if (port === undefined) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return address.port;
}

/** A port of this machine that accepts connections and says nothing, as behind a firewall that lets no answer through. */
export async function silentPort(): Promise<number> {
  const held: Socket[] = [];
  const server = createServer((socket) => void held.push(socket.on("error", () => undefined)));
  const port = await listening(server);
  onTestFinished(() => {
    for (const socket of held) socket.destroy();
    server.close();
  });
  return port;
}
