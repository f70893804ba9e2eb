/** Reads settings from the environment, opens the log, runs the orchestrator until a signal arrives. */

import { Type } from "typebox";
import { edgeToken, nodeToken } from "../shared/agent-api/joining/node-tokens.ts";
import { addressList } from "../shared/http/connections/client-address.ts";
import { machineId } from "../shared/machine-id.ts";
import { ConfigError, describeConfig, readConfig } from "../shared/program/config.ts";
import { createLog } from "../shared/program/log.ts";
import { run } from "../shared/program/run.ts";
import { withCredentials } from "../shared/program/service/credentials.ts";
import { withSpans } from "../shared/program/tracing/spans.ts";
import { keepSite } from "../shared/tls/site/keep.ts";
import { COMMIT, VERSION } from "../shared/version.ts";
import { startOrchestrator } from "./app.ts";
import { verifyAudit } from "./audit/verify-copy.ts";
import { OrchestratorConfig, readOrchestratorConfig } from "./config.ts";
import { readRules } from "./console/oidc/roles.ts";
import { readAllowed } from "./network-policy/proxy.ts";
import { copySqlite, countRecords } from "./store/copy.ts";
import { moveToPostgres } from "./store/moving/move.ts";
import { targetAddresses } from "./webhooks/addresses.ts";

if (process.argv.includes("--version")) {
  process.stdout.write(`${VERSION} (${COMMIT})\n`);
} else if (process.argv.includes("--help")) {
  process.stdout.write(
    `orchestrator: settings are read from the environment. Options:
  --version            only print the version and the commit
  --check              only check the settings; --check-settings is the same
  --verify-audit PLACE [SEQ HASH]
                       only check the audit log of a database that no orchestrator uses: a SQLite file or a postgresql://
                       URL; SEQ and HASH are of an entry that was noted earlier
  --node-tokens NODE   only print the two tokens of a node, as settings of its agent; reads SVC_NODE_KEY
  --site-certificate DIRECTORY DOMAIN
                       only keep an authority of the platform's own for the domain, and a certificate of it, in the
                       directory: for SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE in a private network
  --copy-database FILE  only write the records of SVC_DATABASE as of one moment into a new SQLite file, also while an
                       orchestrator uses it
  --count-records PLACE  only print how many records each table of a database has: a SQLite file, or - for that of
                       DATABASE_URL
  --move-to-postgres   only move the records of SVC_DATABASE, which no orchestrator uses, into the empty PostgreSQL database
                       of DATABASE_URL, and print what was moved
  --edge-token         only print the token of edges on this machine, as a setting of theirs; reads SVC_NODE_KEY
\n${describeConfig(OrchestratorConfig)}\n`,
  );
} else if (process.argv.includes("--verify-audit")) {
  const [place = "", seq, hash = ""] = process.argv.slice(process.argv.indexOf("--verify-audit") + 1);
  const { whole, ...found } = await verifyAudit(place, seq === undefined ? undefined : { seq: Number(seq), hash });
  process.stdout.write(`${JSON.stringify({ whole, ...found })}\n`);
  if (!whole) process.exitCode = 1;
} else if (process.argv.includes("--site-certificate")) {
  await printSite(process.argv.slice(process.argv.indexOf("--site-certificate") + 1));
} else if (process.argv.includes("--node-tokens")) {
  printNodeTokens(process.argv.at(-1) ?? "");
} else if (process.argv.includes("--copy-database")) {
  copySqlite(process.env.SVC_DATABASE ?? "", process.argv.at(-1) ?? "");
} else if (process.argv.includes("--count-records")) {
  const place = process.argv.at(-1) ?? "";
  // A URL has a password, which no command line may hold.
  process.stdout.write(
    `${JSON.stringify(await countRecords(place === "-" ? (process.env.DATABASE_URL ?? "") : place))}\n`,
  );
} else if (process.argv.includes("--move-to-postgres")) {
  await printMove();
} else if (process.argv.includes("--edge-token")) {
  printFromNodeKey((nodeKey) => `SVC_EDGE_TOKEN=${edgeToken(nodeKey)}\n`);
} else {
  await main();
}

/** Keeps the certificate of the platform's own authority, and says what there is: for `scripts/up`. */
async function printSite([directory = "", domain = ""]: readonly string[]): Promise<void> {
  if (directory === "" || !/^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$/.test(domain)) {
    refuse(new ConfigError(["--site-certificate needs a directory and a domain"]));
    return;
  }
  process.umask(0o022);
  try {
    const { is, until } = await keepSite(directory, domain, Date.now());
    process.stdout.write(`${is}, valid until ${new Date(until).toISOString().slice(0, 10)}\n`);
  } catch (error) {
    refuse(error);
  }
}

/** A failure is one line, which `svc` shows. */
async function printMove(): Promise<void> {
  try {
    const moved = await moveToPostgres(process.env.SVC_DATABASE ?? "", process.env.DATABASE_URL ?? "");
    process.stdout.write(`${JSON.stringify(moved)}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

/** Prints settings of a node's agent: for `scripts/up`, and for an operator who adds a node. */
function printNodeTokens(nodeId: string): void {
  printFromNodeKey((nodeKey) => {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(nodeId)) throw new ConfigError(["--node-tokens needs a node's id"]);
    return (
      `SVC_NODE_TOKEN=${nodeToken(nodeKey, nodeId, "from node")}\n` +
      `SVC_ORCHESTRATOR_TOKEN=${nodeToken(nodeKey, nodeId, "to node")}\n`
    );
  });
}

/** Prints settings that are made from SVC_NODE_KEY. */
function printFromNodeKey(settings: (nodeKey: string) => string): void {
  try {
    const { nodeKey } = readConfig(Type.Pick(OrchestratorConfig, ["nodeKey"]), {
      SVC_NODE_KEY: process.env.SVC_NODE_KEY,
    });
    process.stdout.write(settings(nodeKey));
  } catch (error) {
    refuse(error);
  }
}

function refuse(error: unknown): void {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`orchestrator: ${error.problems.length} setting(s) are wrong\n`);
  for (const problem of error.problems) process.stderr.write(`  ${problem}\n`);
  process.exitCode = 2;
}

async function main(): Promise<void> {
  let config: OrchestratorConfig;
  try {
    config = readOrchestratorConfig(withCredentials(process.env));
    readAllowed(config.egressProxyAllow);
    targetAddresses(config.webhookAllow);
    readRules(config.oidcRoles);
    addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
    if (config.adminToken === undefined && config.adminTokenFile === undefined) {
      throw new ConfigError(["SVC_ADMIN_TOKEN_FILE is required"]);
    }
  } catch (error) {
    refuse(error);
    return;
  }
  if (process.argv.includes("--check") || process.argv.includes("--check-settings")) return;
  const component = "orchestrator";
  const log = createLog({ component, level: config.logLevel });
  const start = () =>
    startOrchestrator(config, {
      log,
      now: Date.now,
      random: Math.random,
      machineId: machineId(),
      environment: process.env,
    });
  await run({ log, graceMs: config.shutdownGraceMs, environment: process.env }, () =>
    withSpans(config.otlpEndpoint, { component, log }, start),
  );
}
