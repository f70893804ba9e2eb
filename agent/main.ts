/** The agent as a program: environment → configuration → log → run. */

import { ConfigError, describeConfig } from "../shared/program/config.ts";
import { withDeadline } from "../shared/program/deadline.ts";
import { createLog } from "../shared/program/log.ts";
import { run } from "../shared/program/run.ts";
import { withCredentials } from "../shared/program/service/credentials.ts";
import { withSpans } from "../shared/program/tracing/spans.ts";
import { factsOf } from "../shared/tls/credentials.ts";
import { COMMIT, VERSION } from "../shared/version.ts";
import { startAgent } from "./app.ts";
import { describeBuildGarbage, findBuildGarbage } from "./builds/images/garbage.ts";
import { AgentConfig, readAgentConfig } from "./config.ts";
import type { AgentDeps } from "./deps.ts";
import { describeAbilities } from "./host/abilities-text.ts";
import { readCompanyCertificates } from "./host/company-certificates.ts";
import { readCompanyProxies } from "./host/company-proxies.ts";
import { hostDeps } from "./host-deps.ts";
import { checkMembership } from "./joining/check-membership.ts";
import { checkPeering, joinPlatform } from "./joining/open-peering.ts";
import { planNetwork } from "./network/addresses.ts";
import { describeGarbage, findGarbage } from "./snapshots/store/garbage.ts";
import { openStores } from "./store/stores.ts";

const ABILITIES_LIMIT_MS = 60_000;

async function main(): Promise<void> {
  if (process.argv.includes("--version")) {
    console.log(`${VERSION} (${COMMIT})`);
    return;
  }
  if (process.argv.includes("--help")) {
    console.log(`svc agent: runs sandboxes on this machine. Options:
  --version  only print the version and the commit
  --check    only check the settings, and print what this node can do
  --check-settings  only check the settings
  --join [TOKEN]  only join the platform at SVC_ORCHESTRATOR_URL, and keep the key and the certificate in the state
             directory: the next start is a node of that platform. Default: the token of SVC_JOIN_TOKEN or
             SVC_JOIN_TOKEN_FILE, with which a start does the same
  --check-membership  only ask the platform whether it takes this machine as the node that it has joined as
  --garbage  only list stored memory and images that no record references; the agent removes them when they are old enough
Settings (environment):\n${describeConfig(AgentConfig)}`);
    return;
  }
  try {
    const config = readAgentConfig(withCredentials(process.env));
    checkSubnet(config);
    checkCompanyNetwork(config);
    process.umask(0o077);
    if (process.argv.includes("--join")) {
      await joinNow(config, process.argv[process.argv.indexOf("--join") + 1] ?? config.joinToken ?? "");
      return;
    }
    if (process.argv.includes("--check-membership")) {
      await checkMembership(config, { now: Date.now, log: createLog({ component: "agent", level: "silent" }) });
      return;
    }
    checkPeering(config);
    if (process.argv.includes("--check-settings")) return;
    if (process.argv.includes("--check")) {
      await showAbilities(config);
      return;
    }
    const log = createLog({ component: "agent", level: config.logLevel });
    if (process.argv.includes("--garbage")) {
      await showGarbage(config, hostDeps(config, log));
      return;
    }
    await run({ log, graceMs: config.shutdownGraceMs, environment: process.env }, () =>
      withSpans(config.otlpEndpoint, { component: "agent", log }, () =>
        startAgent(config, hostDeps(config, log, process.env)),
      ),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) console.error(problem);
    process.exit(2);
  }
}

async function joinNow(config: AgentConfig, token: string): Promise<void> {
  const log = createLog({ component: "agent", level: "silent" });
  const { credentials } = await joinPlatform(config, token, { now: Date.now, log });
  const until = new Date(factsOf(credentials.certificate).until).toISOString();
  console.log(
    `this machine has joined the platform as node '${config.nodeId}'; its certificate is valid until ${until} and renews itself while the agent runs`,
  );
}

// Checks what no schema can express. The error has the form and the exit code of every other wrong setting.
function checkSubnet({ networkName, subnet }: AgentConfig): void {
  try {
    planNetwork(networkName, subnet);
  } catch (error) {
    throw new ConfigError([`SVC_SUBNET ${error instanceof Error ? error.message : "is wrong"}`]);
  }
}

// At the start and at `--check`: a platform that goes on without a company's authority or proxy fails later, in each sandbox.
function checkCompanyNetwork(config: AgentConfig): void {
  const { sandboxCaFile } = config;
  const problems: string[] = [];
  try {
    if (sandboxCaFile !== undefined) readCompanyCertificates(sandboxCaFile);
  } catch (error) {
    problems.push(`SVC_SANDBOX_CA_FILE: ${error instanceof Error ? error.message : "cannot be read"}`);
  }
  try {
    readCompanyProxies(config);
  } catch (error) {
    problems.push(error instanceof Error ? error.message : "a proxy of SVC_SANDBOX_… is wrong");
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Tries what the node can do, beside an agent or before its first start. A node that lacks something is no wrong setting. */
async function showAbilities(config: AgentConfig): Promise<void> {
  const deps = hostDeps(config, createLog({ component: "agent", level: "silent" }));
  const probed = deps.machine.abilities.probe("as the agent finds at its start");
  try {
    console.log(describeAbilities(await withDeadline(probed, ABILITIES_LIMIT_MS, noAnswer)));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    console.log(
      `settings are right; what this node can do was not found out, because the Docker daemon has to answer: ${why}`,
    );
  }
}

/** Lists garbage without removing it, so that it may run beside an agent. */
async function showGarbage({ nodeId, buildCacheMb }: AgentConfig, { machine, state, now }: AgentDeps): Promise<void> {
  const { containers } = machine.docker;
  const { files } = machine.memory;
  const stores = openStores(state.databasePath, state.sealing());
  const budgetBytes = buildCacheMb * 1024 ** 2;
  const ofBuilds = describeBuildGarbage(await findBuildGarbage({ containers, stores, nodeId, budgetBytes }));
  console.log(
    [describeGarbage(await findGarbage({ containers, files, stores, now })), ofBuilds].filter(Boolean).join("\n"),
  );
  stores.close();
}

function noAnswer(): never {
  throw new Error(`no answer within ${ABILITIES_LIMIT_MS / 1_000} s`);
}

await main();
