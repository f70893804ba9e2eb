/** Starts a program, waits for a signal, stops it, and exits after a grace period at the latest. */

import { warnOfFewDescriptors } from "./descriptors.ts";
import type { Log } from "./log.ts";
import { serviceManager } from "./service/service-manager.ts";

export interface Stoppable {
  stop(): Promise<void>;
  /** What it does now, in a few words, for `systemctl status`. */
  readonly status?: () => string;
}

export interface RunOptions {
  readonly log: Log;
  /** After this time, or at a second signal, the process exits without waiting. */
  readonly graceMs: number;
  /** What a service manager has set is taken out of it. Absent: none is told anything. */
  readonly environment?: Record<string, string | undefined>;
}

export async function run(
  { log, graceMs, environment = {} }: RunOptions,
  start: () => Promise<Stoppable>,
): Promise<void> {
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "uncaught exception");
    process.exit(1);
  });
  warnOfFewDescriptors(log);
  const manager = serviceManager(environment, log);
  let program: Stoppable;
  try {
    program = await start();
  } catch (error) {
    log.fatal({ err: error }, "could not start");
    process.exit(1);
  }
  manager.ready(program.status ?? (() => "running"));
  const signal = await asked;
  manager.stopping();
  log.info({ signal }, "stopping");
  process.once("SIGTERM", () => process.exit(1));
  process.once("SIGINT", () => process.exit(1));
  const giveUp = setTimeout(() => {
    log.error({ graceMs }, "the program did not stop in time and exits");
    process.exit(1);
  }, graceMs);
  await program.stop();
  clearTimeout(giveUp);
  process.exit(0);
}
