/** `nft monitor` kept running: says at once when another program has touched the table. */

import { type ChildProcess, spawn } from "node:child_process";

const RESTART_MS = 1_000;
/** A change that is larger than this between two marks of its end is not read to the end. */
const MAX_LINE = 65_536;

export interface WatchOptions {
  readonly isOwn: (pid: number) => boolean;
  readonly onTouched: () => void;
}

export function watchTable(network: string, { isOwn, onTouched }: WatchOptions): () => void {
  const state = { stopped: false, child: undefined as ChildProcess | undefined };
  const start = (): ChildProcess => {
    const child = spawn("nft", ["monitor"], { stdio: ["ignore", "pipe", "ignore"] });
    let rest = "";
    let touched = false;
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = (lines.pop() ?? "").slice(-MAX_LINE);
      for (const line of lines) {
        const end = /^# new generation \d+ by process (\d+) /.exec(line);
        if (end === null) touched ||= isAbout(line, network);
        else {
          if (touched && !isOwn(Number(end[1]))) onTouched();
          touched = false;
        }
      }
    });
    child.once("error", () => undefined);
    child.once("close", () => {
      if (state.stopped) return;
      setTimeout(() => {
        if (state.stopped) return;
        state.child = start();
        // Nobody looked in between.
        onTouched();
      }, RESTART_MS).unref();
    });
    child.unref();
    (child.stdout as unknown as { unref(): void }).unref();
    return child;
  };
  state.child = start();
  return () => {
    state.stopped = true;
    state.child?.kill("SIGKILL");
  };
}

function isAbout(line: string, network: string): boolean {
  const [, , family, table] = line.split(" ", 4);
  return family === "inet" && table === network;
}
