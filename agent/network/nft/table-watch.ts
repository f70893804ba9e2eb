/**
 * Keeps `svc-table-watch` running, which reports each change of the table by another program, down to single elements, and
 * changes of other tables and of forwarding. It may miss changes, so the table is also compared every few seconds.
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

/** Each is also called at the start, and when a change may have been missed. */
export interface Changed {
  /** Another program has changed the table. */
  readonly table: () => void;
  /** Rules in other tables, or a forwarding setting, have changed. */
  readonly host: () => void;
}

/** What it prints at the start, and when it may have missed changes. */
const MISSED = "0 0";
const OTHER = "other";
const FORWARDING = "forwarding";

/** Returns the stop function. */
export function watchTable({ network, program, isOwn }: TableWatch, changed: Changed): () => void {
  const state = { stopped: false, child: undefined as ChildProcess | undefined };

  const again = () => {
    setTimeout(start, RESTART_MS).unref();
  };
  const start = () => {
    // Without the program only the regular comparison finds changes.
    program().then(follow).catch(again);
  };
  const follow = (path: string) => {
    if (state.stopped) return;
    const child = spawn(path, [network], { stdio: ["ignore", "pipe", "ignore"] });
    state.child = child;
    child.once("error", () => undefined);
    child.once("close", () => {
      if (!state.stopped) again();
    });
    // No process: `error` and `close` follow. Where descriptors were missing, there is no output either.
    if (child.pid === undefined) return;
    let rest = "";
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE);
      const isOther = (line: string) => line === OTHER || line === FORWARDING;
      // A line names the process that made the change twice: by its own process id, and by the kernel's.
      const foreign = lines.filter((line) => isOther(line) || !line.split(" ").map(Number).some(isOwn));
      // Forwarding is switched on again where the table is restored.
      if (foreign.some((line) => line !== OTHER)) changed.table();
      if (foreign.some((line) => isOther(line) || line === MISSED)) changed.host();
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
