/** Environment → settings → log → the orchestrator, until a signal comes. */

import { readFileSync } from "node:fs";
import { addressList } from "../shared/client-address.ts";
import { ConfigError, describeConfig, readConfig } from "../shared/config.ts";
import { createLog } from "../shared/log.ts";
import { run } from "../shared/run.ts";
import { startOrchestrator } from "./app.ts";
import { FOREIGN_SETTINGS, OrchestratorConfig } from "./config.ts";
import { readAllowed } from "./network/proxy.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(
    `orchestrator: settings are read from the environment\n\n${describeConfig(OrchestratorConfig)}\n`,
  );
} else {
  await main();
}

async function main(): Promise<void> {
  let config: OrchestratorConfig;
  try {
    config = readConfig(OrchestratorConfig, process.env, { ignore: FOREIGN_SETTINGS });
    readAllowed(config.egressProxyAllow);
    addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`orchestrator: ${error.problems.length} setting(s) are wrong\n`);
    for (const problem of error.problems) process.stderr.write(`  ${problem}\n`);
    process.exitCode = 2;
    return;
  }
  if (process.argv.includes("--check")) return;
  const log = createLog({ component: "orchestrator", level: config.logLevel });
  await run({ log, graceMs: config.shutdownGraceMs }, () =>
    startOrchestrator(config, { log, now: Date.now, random: Math.random, machineId: machineId() }),
  );
}

/** The same for every process on this kernel, and for no other; the agent reports the same file. */
function machineId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}
