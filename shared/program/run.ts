/** Starts a program, waits for a signal, stops it, and exits after a grace period at the latest. */

import { warnOfFewDescriptors } from "./descriptors.ts";
import type { Log } from "./log.ts";

export interface Stoppable {
  stop(): Promise<void>;
}

export interface RunOptions {
  readonly log: Log;
  /** After this time, or at a second signal, the process exits without waiting. */
  readonly graceMs: number;
}

export async function run({ log, graceMs }: RunOptions, start: () => Promise<Stoppable>): Promise<void> {
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "uncaught exception");
    process.exit(1);
  });
  warnOfFewDescriptors(log);
  let program: Stoppable;
  try {
    program = await start();
  } catch (error) {
    log.fatal({ err: error }, "could not start");
    process.exit(1);
  }
  const signal = await asked;
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
