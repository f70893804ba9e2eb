/** Wires envd: calls each folder's constructor in the order in which the parts need each other. */

import { setMaxListeners } from "node:events";
import { AppError } from "../shared/http/errors.ts";
import { WatchHub } from "./filesystem/watch/watch-hub.ts";
import { startHttp } from "./http/wire.ts";
import { createInit } from "./init/wire.ts";
import { Metrics } from "./metrics/metrics.ts";
import { createProcesses } from "./process/wire.ts";
import { createRuntime } from "./runtime/wire.ts";
import { createSystem } from "./system/wire.ts";

export interface EnvdConfig {
  /** 0 takes any free port. */
  readonly port: number;
  /** The node's token for the node's routes; without one they take the sandbox's token. */
  readonly controlToken: string | undefined;
  /** PATH of the image. */
  readonly path: string | undefined;
  /** LANG of the image. */
  readonly language: string | undefined;
  /** Path of the svc-exec program. */
  readonly helper: string;
  /** Root of envd's own files, of the user database and of the cgroups: `/` outside of tests. */
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

/** Resolves when envd listens. */
export async function startEnvd(config: EnvdConfig): Promise<Envd> {
  const { now } = config;
  const shutdown = new AbortController();
  // One listener per open stream, and their number has no limit.
  setMaxListeners(0, shutdown.signal);
  const { journal, idleMemory, limits } = createRuntime(config);
  const { users, system } = createSystem(config);
  const hub = new WatchHub(system);
  const { table, memoryKills } = createProcesses(config, { system, journal, limits });
  const { session, initialiser, warm } = createInit(config, { users, journal });
  const rpc = once(async () => {
    const { createRpcHandler } = await import("./rpc/rpc.ts");
    return createRpcHandler({ session, users, system, table, hub, journal, now, shutdown: shutdown.signal });
  });
  const metrics = new Metrics(now);
  const served = { session, system, journal, memoryKills, metrics, initialiser, hub, warm, rpc, idleMemory };
  const http = await startHttp(config, served);
  // Loads the code of RPCs only now: a client's first command needs it, the node's first request does not. The helper
  // process starts now, while the sandbox surely has room for it: a full sandbox would refuse it later.
  const preparing = setTimeout(() => {
    rpc().catch(() => undefined);
    system.start().catch(() => undefined);
  }, PREPARE_AFTER_MS);
  return {
    port: http.port,
    stop: async () => {
      shutdown.abort(new AppError("unavailable", KILLED));
      clearTimeout(preparing);
      idleMemory.stop();
      await http.close();
      await system.stop();
    },
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
