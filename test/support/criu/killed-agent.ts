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

const wanted = (step: string) => existsSync(file) && readFileSync(file, "utf8") === step;

/** Kills this process at the wanted step; returns at any other step. */
function killAt(step: string): void {
  if (!wanted(step)) return;
  rmSync(file);
  process.kill(process.pid, "SIGKILL");
}

const containers: typeof deps.containers = {
  ...deps.containers,
  async start(id) {
    const started = deps.containers.start(id);
    if (wanted("restore begun")) {
      while (!existsSync(join(deps.annotations.criuDirectory(id), "restore.log"))) await delay(1);
      killAt("restore begun");
    }
    await started;
    killAt("restored");
  },
  inspect(id) {
    writeFileSync(`${file}.inspected`, id);
    return deps.containers.inspect(id);
  },
};

const envd: typeof deps.envd = {
  ...deps.envd,
  async ready(...request) {
    await deps.envd.ready(...request);
    killAt("envd answered");
  },
  async init(...request) {
    await deps.envd.init(...request);
    killAt("identity set");
  },
};

await run({ log, graceMs: config.shutdownGraceMs }, () => startAgent(config, { ...deps, containers, envd }));
