/** The edge as a process of its own, as it is started on a machine. */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "../../..");

export interface EdgeProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/** Resolves when it listens. */
export async function startEdgeProcess(settings: Readonly<Record<string, string>>): Promise<EdgeProcess> {
  const stateDir = await mkdtemp(join(tmpdir(), "svc-edge-"));
  const child = spawn(process.execPath, ["--import", "tsx", "orchestrator/edge/main.ts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      PATH: process.env["PATH"],
      SVC_EDGE_PORT: "0",
      SVC_EDGE_STATUS_PORT: "0",
      SVC_EDGE_STATE_DIR: stateDir,
      ...settings,
    },
  });
  const ended = new Promise((resolve) => void child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    await rm(stateDir, { recursive: true, force: true });
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const entry = JSON.parse(line) as { readonly msg?: string; readonly url?: string };
    if (entry.msg !== "edge started" || entry.url === undefined) continue;
    child.stdout.resume();
    return { url: entry.url, stop };
  }
  await stop();
  throw new Error("the edge program ended instead of starting");
}
