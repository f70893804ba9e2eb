/**
 * The agent as a program on a disk whose free space a test decides: the file that SVC_TEST_FREE_MB names holds the free MiB.
 * Sandboxes really write, and the agent really finds out which of them writes.
 */

import { readFile } from "node:fs/promises";
import { startAgent } from "../../../agent/app.ts";
import { AgentConfig } from "../../../agent/config.ts";
import { hostDeps } from "../../../agent/host-deps.ts";
import { readConfig } from "../../../shared/program/config.ts";
import { createLog } from "../../../shared/program/log.ts";
import { run } from "../../../shared/program/run.ts";

const MIB = 1024 ** 2;
const PLENTY = 2 ** 40;

const { SVC_TEST_FREE_MB: file = "", ...environment } = process.env;
const config = readConfig(AgentConfig, environment);
process.umask(0o077);
const log = createLog({ component: "agent", level: config.logLevel });
const readSpace = async () => ({
  device: 1,
  freeBytes: Number(await readFile(file, "utf8")) * MIB,
  totalBytes: PLENTY,
  freeInodes: PLENTY,
  totalInodes: PLENTY,
});
const deps = hostDeps(config, log, environment);
const machine = { ...deps.machine, disks: { ...deps.machine.disks, readSpace } };
await run({ log, graceMs: config.shutdownGraceMs }, () => startAgent(config, { ...deps, machine }));
