/** Wires envd and listens: constructs all its parts. */

import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { AppError } from "../shared/http/errors.ts";
import { WatchHub } from "./filesystem/watch/watch-hub.ts";
import { Access } from "./http/access.ts";
import { createRoutes } from "./http/routes.ts";
import { createHttpServer } from "./http/server.ts";
import { Initialiser } from "./init/init.ts";
import { NO_SETTINGS, Session } from "./init/session.ts";
import { warmUp } from "./init/warm.ts";
import { Metrics } from "./metrics/metrics.ts";
import { ProcessTable } from "./process/process-table.ts";
import { collectGarbage, heapBytes, IdleMemory } from "./runtime/idle-memory.ts";
import { Journal } from "./runtime/journal.ts";
import { childLimits } from "./runtime/own-limits.ts";
import { System } from "./system/system.ts";
import { Users } from "./system/users.ts";

export interface EnvdConfig {
  /** 0 takes any free port. */
  readonly port: number;
  /** The node's token for the node's routes; without one they take the sandbox's token. */
  readonly controlToken: string | undefined;
  /** PATH of the image. */
  readonly path: string | undefined;
  /** Path of the svc-exec program. */
  readonly helper: string;
  /** Root of envd's own files and of the user database: `/` outside of tests. */
  readonly root: string;
  readonly now: () => number;
}

export interface Envd {
  readonly port: number;
  /** Ends every stream with an error frame, then every connection. Processes end with the container. */
  stop(): Promise<void>;
}

/** The error of streams that end with the sandbox. */
const KILLED = "The sandbox was killed or reached its end of life while the request was in flight.";

/** Delay after start: by then the node has found envd listening and sent its identity. */
const PREPARE_AFTER_MS = 50;

export async function startEnvd(config: EnvdConfig): Promise<Envd> {
  const { root, now } = config;
  const shutdown = new AbortController();
  // One listener per open stream, and their number has no limit.
  setMaxListeners(0, shutdown.signal);
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
  const rpc = once(async () => {
    const { createRpcHandler } = await import("./rpc/rpc.ts");
    return createRpcHandler({ session, users, system, table, hub, journal, now, shutdown: shutdown.signal });
  });
  const warm = async (port: number) => {
    const directory = `${root === "/" ? "" : root}/run`;
    // An envd that has its identity keeps it.
    const controlToken = session.settings === NO_SETTINGS ? config.controlToken : undefined;
    await warmUp({ port, program: config.helper, directory, controlToken });
    journal.clear();
  };
  const initialiser = new Initialiser(session, journal, root);
  const routes = createRoutes({ session, access, system, journal, metrics: new Metrics(now), initialiser, hub, warm });
  const idleMemory = new IdleMemory({ used: heapBytes, collect: collectGarbage });
  const server = createHttpServer({ routes, rpc, access, journal, idleMemory });
  await listen(server, config.port);
  // Loads the code of RPCs only now: a client's first command needs it, the node's first request does not. The helper
  // process starts now, while the sandbox surely has room for it: a full sandbox would refuse it later.
  const preparing = setTimeout(() => {
    rpc().catch(() => undefined);
    system.start().catch(() => undefined);
  }, PREPARE_AFTER_MS);
  return {
    port: portOf(server),
    stop: async () => {
      shutdown.abort(new AppError("unavailable", KILLED));
      clearTimeout(preparing);
      idleMemory.stop();
      await closeServer(server);
      await system.stop();
    },
  };
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

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
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
