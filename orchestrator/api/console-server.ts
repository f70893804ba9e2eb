/** The console on a port of its own, so that a firewall or proxy can keep it from those who use the API. */

import type { AddressInfo } from "node:net";
import { connectionLimits } from "../../shared/http/connections/connection-limits.ts";
import { createServer } from "../../shared/http/server.ts";
import { roomFor } from "../../shared/program/descriptors.ts";
import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import { addConsole, type ConsoleParts } from "./server.ts";

/** Share of the process's descriptors. A page holds a few connections. */
const CONSOLE_SHARE = 1 / 32;

interface ConsoleServerParts extends ConsoleParts {
  readonly metrics: Metrics;
  readonly isProxy: (address: string) => boolean;
  /** `address:port`. */
  readonly listen: string;
}

/** Resolves with the console's URL when it listens. */
export async function startConsoleServer(base: Base, parts: ConsoleServerParts): Promise<string> {
  const { config, log, teardown } = base;
  const server = createServer(log, {
    trustedProxies: config.trustedProxies,
    connections: connectionLimits({
      ...roomFor(CONSOLE_SHARE, { total: 0, perAddress: 0 }),
      name: "console",
      isShared: parts.isProxy,
      log,
    }),
  });
  parts.metrics.watch(server);
  addConsole(server, parts);
  // The port serves nothing else, so its root leads there.
  server.get("/", (_request, reply) => reply.redirect("/console/"));
  const at = parts.listen.lastIndexOf(":");
  const host = parts.listen.slice(0, at);
  await server.listen({ host: host.replace(/^\[|\]$/g, ""), port: Number(parts.listen.slice(at + 1)) });
  teardown.add("console's server", () => server.close());
  const { port } = server.server.address() as AddressInfo;
  return `http://${host}:${port}/console/`;
}
