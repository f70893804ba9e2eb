/**
 * A Docker daemon of the bench's own with `--experimental`, for Docker's own checkpoints. It shares nothing with the
 * machine's daemon.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../support/platform/programs.ts";
import { until } from "../../support/runner/until.ts";
import { plainCriu } from "./plain-criu.ts";

export interface ExperimentalEngine {
  readonly docker: (...args: readonly string[]) => Promise<string>;
  stop(): Promise<void>;
}

/** @param image an image of the machine's Docker daemon, which is copied into this one */
export async function startExperimentalEngine(image: string): Promise<ExperimentalEngine> {
  const home = await mkdtemp(join(tmpdir(), "svc-bench-engine-"));
  const socket = `unix://${home}/docker.sock`;
  const PATH = await plainCriu(home);
  // The daemon has a network namespace of its own: a daemon without a bridge would delete the bridge of the machine's
  // daemon.
  const args = ["--experimental", "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"];
  const places = ["--data-root", `${home}/data`, "--exec-root", `${home}/run`, "--pidfile", `${home}/pid`];
  // CRIU runs in that namespace too, and tries TCP over loopback before anything else.
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
