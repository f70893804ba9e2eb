/**
 * The agent as a program with settings of a test: SVC_TEST_PROGRAMS is a directory whose programs (`criu`, `svc-inside`) a
 * dump finds before the installed ones, SVC_TEST_RESTORE_LIMIT_MS is the time limit of a restore, and SVC_TEST_DUMP_LIMIT_MS
 * that of a dump.
 */

import { startAgent } from "../../../agent/app.ts";
import { AgentConfig } from "../../../agent/config.ts";
import { runCommand } from "../../../agent/host/command.ts";
import { hostDeps } from "../../../agent/host-deps.ts";
import { hostCriu } from "../../../agent/snapshots/criu/criu.ts";
import { readConfig } from "../../../shared/program/config.ts";
import { createLog } from "../../../shared/program/log.ts";
import { run } from "../../../shared/program/run.ts";

const {
  SVC_TEST_PROGRAMS: programs,
  SVC_TEST_RESTORE_LIMIT_MS: limit,
  SVC_TEST_DUMP_LIMIT_MS: dumpLimit,
  ...environment
} = process.env;
const config = readConfig(AgentConfig, environment);
process.umask(0o077);
const log = createLog({ component: "agent", level: config.logLevel });
const criu = hostCriu((program, args, { path, ...options } = {}) =>
  runCommand(program, args, {
    ...options,
    ...(dumpLimit === undefined || program !== "runc" ? {} : { timeoutMs: Number(dumpLimit) }),
    ...(path === undefined ? {} : { path: programs === undefined ? path : `${programs}:${path}` }),
  }),
);
const restoreLimitMs = limit === undefined ? undefined : Number(limit);
const deps = hostDeps(config, log, environment);
const machine = { ...deps.machine, memory: { ...deps.machine.memory, criu, restoreLimitMs } };
await run({ log, graceMs: config.shutdownGraceMs }, () => startAgent(config, { ...deps, machine }));
