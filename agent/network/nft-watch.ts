/**
 * `nft monitor` kept running: says at once when rules of the table were touched; a table or a chain goes with its rules.
 * Of elements it says nothing: nft writes megabytes about one interval of addresses, so those are left to the comparison.
 */

import { type ChildProcess, spawn } from "node:child_process";

const RESTART_MS = 1_000;
const MAX_LINE = 4_096;

/** Our own rebuilding is told, too. Ends it when called. */
export function watchRules(network: string, onTouched: () => void): () => void {
  const state = { stopped: false, child: undefined as ChildProcess | undefined };

  const start = (): ChildProcess => {
    const child = spawn("nft", ["monitor", "rules"], { stdio: ["ignore", "pipe", "ignore"] });
    let rest = "";
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE);
      if (lines.some((line) => isAbout(line, network))) onTouched();
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

/** As in `delete rule inet svc out handle 7`. */
function isAbout(line: string, network: string): boolean {
  const [, what, family, table] = line.split(" ", 4);
  return what === "rule" && family === "inet" && table === network;
}
