/**
 * Keeps `svc-table-watch` running, which reports each change of the table by another program, down to single elements.
 * It may miss changes, so the table is also compared every few seconds.
 */

import { type ChildProcess, spawn } from "node:child_process";

const RESTART_MS = 1_000;
const MAX_LINE = 4_096;

export interface TableWatch {
  readonly network: string;
  readonly program: () => Promise<string>;
  /** Whether the process that made a change is an `nft` of this agent. */
  readonly isOwn: (pid: number) => boolean;
}

/** Calls `onTouched` at the start, at each foreign change, and when it may have missed one. Returns the stop function. */
export function watchTable({ network, program, isOwn }: TableWatch, onTouched: () => void): () => void {
  const state = { stopped: false, child: undefined as ChildProcess | undefined };

  const again = () => {
    setTimeout(start, RESTART_MS).unref();
  };
  const start = () => {
    // Without the program only the regular comparison finds changes.
    program().then(follow, again);
  };
  const follow = (path: string) => {
    if (state.stopped) return;
    const child = spawn(path, [network], { stdio: ["ignore", "pipe", "ignore"] });
    state.child = child;
    let rest = "";
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE);
      // A line names the process that made the change twice: by its own process id, and by the kernel's.
      if (lines.some((line) => !line.split(" ").map(Number).some(isOwn))) onTouched();
    });
    child.once("error", () => undefined);
    child.once("close", () => {
      if (!state.stopped) again();
    });
    child.unref();
    (child.stdout as unknown as { unref(): void }).unref();
  };
  start();
  return () => {
    state.stopped = true;
    state.child?.kill("SIGKILL");
  };
}
