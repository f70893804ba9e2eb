/** Accepts redirected connections. svc-egress makes the socket, because Node cannot make one that accepts them all. */

import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { logAcceptFailures } from "../../shared/http/connections/accept-failures.ts";
import type { Log } from "../../shared/program/log.ts";

const KEEP_ALIVE_MS = 60_000;
const WAITING_CONNECTIONS = 4_096;

export interface Listener {
  stop(): Promise<void>;
}

/** `taken` gets paused sockets whose local address is the sandbox's intended destination. */
export async function listen(fd: number, taken: (socket: Socket) => void, log: Log): Promise<Listener> {
  const server = createServer(
    {
      allowHalfOpen: true,
      pauseOnConnect: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    },
    (socket) => {
      // The flow adds its own listeners later; until then a reset must not end the process as an unhandled error.
      socket.on("error", () => undefined);
      taken(socket);
    },
  );
  server.listen({ fd, backlog: WAITING_CONNECTIONS });
  await once(server, "listening");
  // Without a free descriptor Node closes the waiting connection.
  logAcceptFailures(server, log);
  return {
    async stop() {
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}
