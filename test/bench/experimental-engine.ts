/** A Docker daemon of the bench's own with `--experimental`, for Docker's own checkpoints: it shares nothing with the machine's. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import { plainCriu } from "./plain-criu.ts";

export interface ExperimentalEngine {
  readonly docker: (...args: readonly string[]) => Promise<string>;
  stop(): Promise<void>;
}

/** @param image of the machine's Docker daemon, copied into this one */
export async function startExperimentalEngine(image: string): Promise<ExperimentalEngine> {
  const home = await mkdtemp(join(tmpdir(), "svc-bench-engine-"));
  const socket = `unix://${home}/docker.sock`;
  const PATH = await plainCriu(home);
  // In a network namespace of its own: without a bridge of its own it would delete the machine's.
  const args = ["--experimental", "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"];
  const places = ["--data-root", `${home}/data`, "--exec-root", `${home}/run`, "--pidfile", `${home}/pid`];
  // CRIU, which runs in that namespace too, tries TCP over loopback before anything else.
  const withLoopback = ["--net", "sh", "-c", 'ip link set lo up && exec dockerd "$@"', "dockerd"];
  const engine = spawn("unshare", [...withLoopback, ...args, ...places, "--host", socket], {
    env: { ...process.env, PATH },
    stdio: "ignore",
  });
  const docker = (...command: readonly string[]) => run("docker", ["-H", socket, ...command], { PATH });
  const stop = async () => {
    const gone = engine.exitCode === null ? once(engine, "exit") : undefined;
    engine.kill("SIGTERM");
    await gone;
    await rm(home, { recursive: true, force: true });
  };
  try {
    const answers = () =>
      docker("version").then(
        () => true,
        () => false,
      );
    await until(answers, { what: "a Docker daemon with checkpoints", timeoutMs: 30_000, everyMs: 200 });
    await run("bash", ["-c", `docker save ${image} | docker -H ${socket} load`]);
  } catch (error) {
    await stop();
    throw error;
  }
  return { docker, stop };
}
