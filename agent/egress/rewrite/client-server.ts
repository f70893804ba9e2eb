/** The HTTP server that reads the requests of one intercepted connection, as strictly as the rewriter needs it. */

import { createServer, type Server } from "node:http";
import { MAX_HEAD_BYTES } from "./exchange.ts";

/** Limit between an answer and the end of the next head. */
export const IDLE_LIMIT_MS = 120_000;

export function clientServer(): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    // The rewriter's own answer to a missing Host says more than Node's.
    requireHostHeader: false,
    insecureHTTPParser: false,
    keepAliveTimeout: IDLE_LIMIT_MS,
  });
  // No limit: Node would leave out further headers, and every header must be checked.
  server.maxHeadersCount = 0;
  // A client that has ended its sending side still wants its answer.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  return server;
}
