/** Constructs the HTTP server with its routes and the access to them. */

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { cut } from "../../shared/proxy/sockets/cut.ts";
import { Access } from "./access.ts";
import { createRoutes, type RouteDeps } from "./routes.ts";
import { createHttpServer, type ServerDeps } from "./server.ts";

interface HttpConfig {
  /** 0 takes any free port. */
  readonly port: number;
  readonly controlToken: string | undefined;
  readonly now: () => number;
}

interface HttpDeps extends Omit<RouteDeps, "access">, Pick<ServerDeps, "rpc" | "idleMemory"> {}

interface HttpService {
  readonly port: number;
  /** Ends connections without a request at once, the others after the time for a last frame. */
  close(): Promise<void>;
}

/** How long streams have to send their last frame. */
const LAST_FRAME_MS = 200;

/** Resolves when envd listens. */
export async function startHttp({ port, controlToken, now }: HttpConfig, deps: HttpDeps): Promise<HttpService> {
  const access = new Access(deps.session, controlToken, now);
  const server = createHttpServer({ ...deps, routes: createRoutes({ ...deps, access }), access });
  const tunnels = tunnelsOf(server);
  await listen(server, port);
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server, tunnels) };
}

// Without an address Node listens on IPv4 and IPv6, or on the one family that exists.
function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** The open connections that were upgraded: `closeAllConnections` leaves them open, and the server's end waits for them. */
function tunnelsOf(server: Server): ReadonlySet<Duplex> {
  const open = new Set<Duplex>();
  server.on("upgrade", (_request, socket: Duplex) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}

function closeServer(server: Server, tunnels: ReadonlySet<Duplex>): Promise<void> {
  return new Promise((resolve) => {
    const last = setTimeout(() => {
      server.closeAllConnections();
      for (const tunnel of tunnels) cut(tunnel);
    }, LAST_FRAME_MS);
    server.close(() => {
      clearTimeout(last);
      resolve();
    });
    server.closeIdleConnections();
  });
}
