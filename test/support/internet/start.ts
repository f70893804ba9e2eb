/** Starts the test internet of an instance, for as long as this process lives or until a caller stops it. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { checkout } from "../platform/platform.ts";
import { LOCK } from "./plan.ts";

/** Another run on this machine may have an internet, and then this one waits for its end. */
const WAIT_S = 1200;

export async function startInternet(instance: string): Promise<{ stop(): Promise<void> }> {
  if (process.getuid?.() !== 0) throw new Error("the test internet is a network namespace: these tests need root");
  const keeper = new URL("keeper.ts", import.meta.url).pathname;
  const program = [process.execPath, "--import", "tsx", keeper, instance];
  const child = spawn("flock", ["-o", "-w", String(WAIT_S), LOCK, ...program], {
    cwd: checkout,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = new Promise<number>((resolve) => {
    child.on("exit", (code) => resolve(code ?? 1));
  });
  const ready = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "ready") resolve();
    });
  });
  const first = await Promise.race([ready.then(() => "ready"), exited]);
  if (first !== "ready") throw new Error(`the test internet did not start (status ${first})`);
  return {
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
