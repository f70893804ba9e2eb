/** Starts a program in a process of its own, which reports how many bytes it holds. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Held {
  /** The port, from the program's first line. */
  readonly port: number;
  /** The bytes in use after a garbage collection: heap, buffers, and data that waits to be written. */
  bytes(): Promise<number>;
  stop(): Promise<void>;
}

/** @param program prints a port, then answers each line on its input with the bytes that it holds */
export async function startHeld(program: string, ...args: readonly string[]): Promise<Held> {
  const child = spawn(process.execPath, ["--import", "tsx", "--expose-gc", program, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error("the program has ended");
    return Number(value);
  };
  return {
    port: await next(),
    bytes() {
      child.stdin.write("bytes\n");
      return next();
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}
