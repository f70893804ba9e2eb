/** Keeps the server running: there is no other supervisor in a sandbox. */

import { type ChildProcess, spawn } from "node:child_process";

/** The first restart is at once; a server that cannot start is tried again less and less often. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const BETWEEN_LOOKS_MS = 1_000;
/** A server that ran so long had started well. */
const RAN_WELL_MS = 10_000;

export interface SupervisorDeps {
  /** Program and arguments of the server. */
  readonly command: readonly string[];
  /** Whether the server of a supervisor that was killed still runs: it has the kernels, and is left alone until it ends. */
  readonly another: () => Promise<boolean>;
  readonly log: (level: "info" | "error", message: string) => void;
}

export interface Supervisor {
  /** Ends the server with the signal; fulfilled when it is gone. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

export function supervise({ command: [program = "", ...args], another, log }: SupervisorDeps): Supervisor {
  let server: ChildProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let pause = FIRST_PAUSE_MS;
  let stopped: (() => void) | undefined;

  let waited = false;
  const start = async () => {
    const waits = await another();
    if (stopped !== undefined) return;
    if (waits) {
      if (!waited) log("info", "the server of an earlier supervisor runs, and another one starts when it ends");
      waited = true;
      timer = setTimeout(() => void start(), BETWEEN_LOOKS_MS);
      return;
    }
    waited = false;
    const startedAt = Date.now();
    server = spawn(program, args, { stdio: "inherit" });
    let over = false;
    const end = (how: string) => {
      if (over) return;
      over = true;
      server = undefined;
      if (stopped !== undefined) {
        stopped();
        return;
      }
      pause = Date.now() - startedAt > RAN_WELL_MS ? FIRST_PAUSE_MS : Math.min(pause * 2, LONGEST_PAUSE_MS);
      log("error", `the server ended (${how}) and is started again in ${pause} ms`);
      timer = setTimeout(() => void start(), pause);
    };
    server.once("error", (error) => end(error.message));
    server.once("exit", (code, signal) => end(signal ?? `exit code ${code ?? 0}`));
  };
  void start();

  return {
    async stop(signal) {
      clearTimeout(timer);
      await new Promise<void>((resolve) => {
        stopped = resolve;
        if (server === undefined) resolve();
        else server.kill(signal);
      });
    },
  };
}
