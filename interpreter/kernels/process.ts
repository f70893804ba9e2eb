/** A kernel's process: in a session of its own, with the end of its stderr kept, killed with its whole group. */

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import type { KernelEnd } from "./kernel.ts";

const MOST_SAID = 4_096;
/** A killed process is gone in milliseconds, unless it waits for a disk. */
const GONE_MS = 5_000;

export interface ProcessOptions {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly stdio: StdioOptions;
  /** Keeps the last of stderr for `KernelEnd.said`, and drops the rest. */
  readonly keepsErrors: boolean;
}

export class KernelProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<KernelEnd>;
  #over = false;
  #said = "";

  /** @param command program and arguments; one that cannot be started ends at once, and `said` has the reason */
  constructor([program = "", ...args]: readonly string[], options: ProcessOptions) {
    const { cwd, environment, stdio, keepsErrors } = options;
    this.child = spawn(program, args, { cwd, env: environment, stdio, detached: true });
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => {
        this.#over = true;
        resolve({ code, signal, said: this.#said });
      };
      this.child.once("exit", end);
      this.child.once("error", (error) => {
        this.#said += error.message;
        if (this.child.pid === undefined) end(null, null);
      });
    });
    if (keepsErrors)
      this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
        this.#said = (this.#said + text).slice(-MOST_SAID);
      });
  }

  get over(): boolean {
    return this.#over;
  }

  /** Signals the group, as a terminal does, so that programs that the kernel runs get it too. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined || this.#over) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The group ended in this moment.
    }
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.ended, new Promise((resolve) => (timer = setTimeout(resolve, GONE_MS)))]);
    clearTimeout(timer);
  }
}
