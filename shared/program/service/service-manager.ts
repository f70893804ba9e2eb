/**
 * Tells systemd that the program is ready, what it does, and that its event loop turns (`sd_notify`). Node has no datagram sockets of the
 * file system, so `systemd-notify` sends: it is there wherever somebody listens, and no native code has to be built for it. Nothing
 * is done where no service manager asks.
 */

import { execFile } from "node:child_process";
import type { Log } from "../log.ts";

export interface ServiceManager {
  /** The program has started. @param status one line for `systemctl status` */
  ready(status: () => string): void;
  stopping(): void;
}

type Environment = Record<string, string | undefined>;

/** Between two lines of status; the watchdog may ask for shorter. */
const EVERY_MS = 10_000;
const SEND_LIMIT_MS = 5_000;
const LONGEST_STATUS = 200;
const READY = "READY=1";

/** Takes the settings of the service manager out of the environment: no child of the program may speak for it, or look for its keys. */
export function serviceManager(environment: Environment, log: Log): ServiceManager {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: limit, WATCHDOG_PID: pid } = environment;
  delete environment["NOTIFY_SOCKET"];
  delete environment["WATCHDOG_USEC"];
  delete environment["WATCHDOG_PID"];
  delete environment["CREDENTIALS_DIRECTORY"];
  if (socket === undefined || socket === "") return { ready: () => undefined, stopping: () => undefined };
  const everyMs = intervalOf(limit, pid);
  const state = { busy: false, failed: false, stopping: false };
  /** Said with each line until one was sent: systemd would end a program of whose start it never hears. */
  let untold: readonly string[] = [];

  const send = (...assignments: readonly string[]) => {
    state.busy = true;
    const said = [...untold, ...assignments];
    const env = { PATH: environment["PATH"], NOTIFY_SOCKET: socket };
    execFile("systemd-notify", said, { env, timeout: SEND_LIMIT_MS }, (error) => {
      state.busy = false;
      if (error !== null && !state.failed) log.warn({ err: error }, "could not notify the service manager");
      state.failed = error !== null;
      if (error === null && said.includes(READY)) untold = [];
    });
  };

  const now = { status: () => "starting" };
  // A loop that stands still sends nothing: then systemd ends the program, and starts it again.
  setInterval(() => {
    if (!state.busy && !state.stopping) send(lineOf(now.status), "WATCHDOG=1");
  }, everyMs).unref();

  return {
    ready(status) {
      now.status = status;
      untold = [READY];
      send(lineOf(status), "WATCHDOG=1");
    },
    stopping() {
      state.stopping = true;
      untold = [];
      send("STOPPING=1", "STATUS=stopping");
    },
  };
}

/** A third of the watchdog's time, so that one lost message costs nothing. */
function intervalOf(limit: string | undefined, pid: string | undefined): number {
  const microseconds = Number(limit);
  if (!Number.isFinite(microseconds) || microseconds <= 0) return EVERY_MS;
  if (pid !== undefined && Number(pid) !== process.pid) return EVERY_MS;
  return Math.max(100, Math.min(EVERY_MS, microseconds / 3_000));
}

function lineOf(status: () => string): string {
  return `STATUS=${status().replaceAll(/\s+/g, " ").slice(0, LONGEST_STATUS)}`;
}
