/**
 * The agent as a program that kills itself with SIGKILL, once, at the step that the file SVC_TEST_KILL_AT names. It writes
 * the file SVC_TEST_KILL_AT.inspected whenever it asks Docker about a container.
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startAgent } from "../../../agent/app.ts";
import { AgentConfig } from "../../../agent/config.ts";
import { hostDeps } from "../../../agent/host-deps.ts";
import { readConfig } from "../../../shared/program/config.ts";
import { createLog } from "../../../shared/program/log.ts";
import { run } from "../../../shared/program/run.ts";

const { SVC_TEST_KILL_AT: file = "", ...environment } = process.env;
const config = readConfig(AgentConfig, environment);
process.umask(0o077);
const log = createLog({ component: "agent", level: config.logLevel });
const deps = hostDeps(config, log, environment);
const { docker } = deps.machine;

const wanted = (step: string) => existsSync(file) && readFileSync(file, "utf8") === step;

/** Kills this process at the wanted step; returns at any other step. */
function killAt(step: string): void {
  if (!wanted(step)) return;
  rmSync(file);
  process.kill(process.pid, "SIGKILL");
}

const containers: typeof docker.containers = {
  ...docker.containers,
  async start(id) {
    const started = docker.containers.start(id);
    if (wanted("restore begun")) {
      while (!existsSync(join(docker.annotations.criuDirectory(id), "restore.log"))) await delay(1);
      killAt("restore begun");
    }
    await started;
    killAt("restored");
  },
  inspect(id) {
    writeFileSync(`${file}.inspected`, id);
    return docker.containers.inspect(id);
  },
};

const envd: typeof docker.envd = {
  ...docker.envd,
  async ready(...request) {
    await docker.envd.ready(...request);
    killAt("envd answered");
  },
  async init(...request) {
    await docker.envd.init(...request);
    killAt("identity set");
  },
};

const machine = { ...deps.machine, docker: { ...docker, containers, envd } };
await run({ log, graceMs: config.shutdownGraceMs }, () => startAgent(config, { ...deps, machine }));
