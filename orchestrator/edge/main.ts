/** The edge as a program: environment → configuration → log → run. */

import { machineId } from "../../shared/machine-id.ts";
import { ConfigError, describeConfig } from "../../shared/program/config.ts";
import { createLog } from "../../shared/program/log.ts";
import { run } from "../../shared/program/run.ts";
import { withCredentials } from "../../shared/program/service/credentials.ts";
import { withSpans } from "../../shared/program/tracing/spans.ts";
import { factsOf } from "../../shared/tls/credentials.ts";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { EdgeConfig, readEdgeConfig } from "./program/config.ts";
import { checkMembership, joinAsEdge } from "./program/joining.ts";
import { startEdgeProgram } from "./program/start.ts";

async function main(): Promise<void> {
  if (process.argv.includes("--version")) {
    process.stdout.write(`${VERSION} (${COMMIT})\n`);
    return;
  }
  if (process.argv.includes("--help")) {
    process.stdout.write(`svc edge: carries the traffic of sandboxes. Options:
  --version  only print the version and the commit
  --check    only check the settings; --check-settings is the same
  --join [TOKEN]  only join the platform at SVC_ORCHESTRATOR_URL, and keep the key and the certificate in the state
             directory: the next start is an edge of that platform. Default: the token of SVC_JOIN_TOKEN or
             SVC_JOIN_TOKEN_FILE, with which a start does the same
Settings (environment):\n${describeConfig(EdgeConfig)}\n`);
    return;
  }
  try {
    const config = readEdgeConfig(withCredentials(process.env));
    process.umask(0o077);
    if (process.argv.includes("--join")) {
      await joinNow(config, process.argv[process.argv.indexOf("--join") + 1] ?? config.joinToken ?? "");
      return;
    }
    checkMembership(config);
    if (process.argv.includes("--check") || process.argv.includes("--check-settings")) return;
    const log = createLog({ component: "edge", level: config.logLevel });
    const stopping = new AbortController();
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());
    const deps = { log, now: Date.now, random: Math.random, machineId: machineId(), stopping: stopping.signal };
    await run({ log, graceMs: config.shutdownGraceMs, environment: process.env }, () =>
      withSpans(config.otlpEndpoint, { component: "edge", log }, () => startEdgeProgram(config, deps)),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`edge: ${error.problems.length} setting(s) are wrong\n`);
    for (const problem of error.problems) process.stderr.write(`  ${problem}\n`);
    process.exitCode = 2;
  }
}

async function joinNow(config: EdgeConfig, token: string): Promise<void> {
  const log = createLog({ component: "edge", level: "silent" });
  const { certificate } = await joinAsEdge(config, token, { now: Date.now, log });
  const until = new Date(factsOf(certificate).until).toISOString();
  process.stdout.write(
    `this machine has joined the platform as edge '${config.edgeId}'; its certificate is valid until ${until} and renews itself while the edge runs\n`,
  );
}

await main();
