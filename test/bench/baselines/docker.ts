/** The baseline by plain Docker: `docker run -d` with a sandbox's limits, `docker exec`, `docker rm`. */

import { randomUUID } from "node:crypto";
import { run } from "../../support/platform/programs.ts";

export const IMAGE = "svc/base:latest";

/** A sandbox's limits and hardening as options of `docker run`, on Docker's own bridge and runtime. */
const LIMITS = [
  "--memory=1024m",
  "--memory-swap=1024m",
  "--cpus=2",
  "--pids-limit=4096",
  "--ulimit=core=0",
  "--cap-drop=ALL",
  "--cap-add=SETUID",
  "--cap-add=SETGID",
  "--cap-add=CHOWN",
  "--log-driver=none",
  "--network=bridge",
];

export interface PlainContainer {
  readonly name: string;
  exec(...command: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

export async function dockerRun(command: readonly string[] = ["sleep", "infinity"]): Promise<PlainContainer> {
  const name = `bench-${randomUUID().slice(0, 8)}`;
  await run("docker", ["run", "-d", "--name", name, ...LIMITS, IMAGE, ...command]);
  return {
    name,
    exec: (...command) => run("docker", ["exec", name, ...command]),
    remove: async () => {
      await run("docker", ["rm", "-f", name]);
    },
  };
}
