/** Servers of a test on a free port. */

import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Resolves, once it listens, to the port: a free one unless the test has its own. */
export async function listening(server: Server, host = "127.0.0.1", port = 0): Promise<number> {
  const listens = once(server, "listening");
  server.listen(port, host);
  await listens;
  return portOf(server);
}

/** Finds a port that is free at the moment, for a program that needs its port beforehand. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const port = await listening(probe);
  probe.close();
  await once(probe, "close");
  return port;
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return address.port;
}
