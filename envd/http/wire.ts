/** Constructs the HTTP server with its routes and the access to them. */

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
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
  await listen(server, port);
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server) };
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

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), LAST_FRAME_MS);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
