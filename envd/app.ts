/** Puts envd together and listens: the only file that constructs things. */

import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { Entries } from "./filesystem/entry.ts";
import { PolledWatchers } from "./filesystem/polled-watchers.ts";
import { WatchHub } from "./filesystem/watch-hub.ts";
import { Access } from "./http/access.ts";
import { createRoutes } from "./http/routes.ts";
import { createHttpServer } from "./http/server.ts";
import { Initialiser } from "./init.ts";
import { Journal } from "./journal.ts";
import { Metrics } from "./metrics/metrics.ts";
import { childLimits } from "./own-limits.ts";
import { ProcessTable } from "./process/process-table.ts";
import { createRpcHandler } from "./rpc.ts";
import { Session } from "./session.ts";
import { System } from "./system/system.ts";
import { Users } from "./users.ts";
import { warmUp } from "./warm.ts";

export interface EnvdConfig {
  /** 0 takes any free one. */
  readonly port: number;
  /** The node's token for its routes; without one they need the sandbox's. */
  readonly controlToken: string | undefined;
  /** PATH of the image. */
  readonly path: string | undefined;
  /** The svc-exec program. */
  readonly helper: string;
  /** Where envd writes its own files and looks for users: `/` outside of tests. */
  readonly root: string;
  readonly now: () => number;
}

export interface Envd {
  readonly port: number;
  /** Ends every stream with an error frame, then every connection. Processes are left to the container's end. */
  stop(): Promise<void>;
}

/** What clients are told by streams that end with the sandbox (wire-contract.md §2.6). */
const KILLED = "The sandbox was killed or reached its end of life while the request was in flight.";

export async function startEnvd(config: EnvdConfig): Promise<Envd> {
  const { root, now } = config;
  const shutdown = new AbortController();
  const users = new Users(`${root === "/" ? "" : root}/etc`);
  const session = new Session(users, config.path);
  const journal = new Journal(now);
  const system = new System(config.helper);
  const hub = new WatchHub(system);
  const table = new ProcessTable(
    system,
    journal,
    childLimits(read("/proc/self/oom_score_adj"), read(`/proc/${process.ppid}/limits`)),
  );
  const access = new Access(session, config.controlToken, now);
  const entries = new Entries(system, users);
  const rpc = createRpcHandler({
    process: { session, table },
    filesystem: { session, system, entries, hub, polled: new PolledWatchers(hub, now) },
    journal,
    shutdown: shutdown.signal,
  });
  const warm = async () => {
    await warmUp({ port: portOf(server), program: config.helper, directory: `${root === "/" ? "" : root}/run` });
    journal.clear();
  };
  const initialiser = new Initialiser(session, journal, root);
  const routes = createRoutes({ session, access, system, journal, metrics: new Metrics(now), initialiser, hub, warm });
  const server = createHttpServer({ routes, rpc, access, journal });
  await listen(server, config.port);
  // While there surely is room for it: a sandbox full of processes would refuse it later.
  await system.start();
  return {
    port: portOf(server),
    stop: async () => {
      shutdown.abort(new ConnectError(KILLED, Code.Unavailable));
      await closeServer(server);
      await system.stop();
    },
  };
}

// Both families where there are two; an image's kernel may have none of the second.
function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const retryOnIpv4 = (error: NodeJS.ErrnoException) => {
      if (error.code !== "EAFNOSUPPORT" && error.code !== "EADDRNOTAVAIL") {
        reject(error);
        return;
      }
      server.once("error", reject);
      server.listen(port, "0.0.0.0", resolve);
    };
    server.once("error", retryOnIpv4);
    server.listen({ port, host: "::", ipv6Only: false, backlog: 511 }, () => {
      server.off("error", retryOnIpv4);
      resolve();
    });
  });
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** How long streams have to send their last frame. */
const LAST_FRAME_MS = 200;

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

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
