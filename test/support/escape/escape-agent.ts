/**
 * The agent as a program whose dumps use another CRIU than the installed one: SVC_TEST_CRIU_PATH is the PATH that leads to
 * it. A setting names the OCI runtime, which does the restores.
 */

import { startAgent } from "../../../agent/app.ts";
import { AgentConfig } from "../../../agent/config.ts";
import { runCommand } from "../../../agent/host/command.ts";
import { hostDeps } from "../../../agent/host-deps.ts";
import { hostCriu } from "../../../agent/snapshots/criu/criu.ts";
import { readConfig } from "../../../shared/program/config.ts";
import { createLog } from "../../../shared/program/log.ts";
import { run } from "../../../shared/program/run.ts";

const { SVC_TEST_CRIU_PATH: path = "", ...environment } = process.env;
const config = readConfig(AgentConfig, environment);
process.umask(0o077);
const log = createLog({ component: "agent", level: config.logLevel });
const criu = hostCriu((program, args, options) => runCommand(program, args, { ...options, path }));
const deps = hostDeps(config, log, environment);
const machine = { ...deps.machine, memory: { ...deps.machine.memory, criu } };
await run({ log, graceMs: config.shutdownGraceMs }, () => startAgent(config, { ...deps, machine }));
