/**
 * `tsx test/support/internet/configure.ts`, before `scripts/up`: writes the settings with which the platform of SVC_INSTANCE
 * lives on the test internet. The platform asks names there, trusts the internet's authority, and may build templates from
 * the machine's own images. Its periodic checks run more often than on an operator's platform, because crash tests wait for
 * them after every kill. Running it again changes nothing; `--remove` removes the route that it makes.
 */

import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { checkout } from "../platform/platform.ts";
import { run } from "../platform/programs.ts";
import { authorityFile, makeAuthority } from "./certificates.ts";
import { ADDRESS, internetPlan } from "./plan.ts";

/**
 * The metric of a route that comes after every other one: while no test internet is up, it leads the resolver's address
 * nowhere, so that the platform's questions do not leave the machine. The route covers only this one address, because the
 * platform by itself sends packets to no other address of the range.
 */
const LAST_METRIC = String(2 ** 32 - 1);
const nowhere = ["unreachable", `${ADDRESS.dns}/32`, "metric", LAST_METRIC];
if (process.argv.includes("--remove")) {
  await run("ip", ["route", "del", ...nowhere]).catch(() => undefined);
  process.exit();
}
await run("ip", ["route", "replace", ...nowhere]);

const instance = process.env.SVC_INSTANCE ?? "test";
// An operator's own platform must not lose the real internet.
if (instance === "") throw new Error("the default instance is not for tests: set SVC_INSTANCE");
const plan = internetPlan(instance);
await makeAuthority(plan.authorityDirectory);

const directory = `${checkout}.svc-${instance}`;
const file = `${directory}/config.env`;
const wanted = {
  SVC_DNS_UPSTREAM: ADDRESS.dns,
  // The host's rules of the tests drop what leaves for another place than the test internet.
  SVC_NETWORK_PROBE_ADDRESS: ADDRESS.probe,
  NODE_EXTRA_CA_CERTS: authorityFile(plan.authorityDirectory),
  SVC_HEARTBEAT_EVERY_MS: "1000",
  SVC_RECONCILE_EVERY_MS: "1000",
  SVC_END_GRACE_MS: "10000",
  // Tests also run on a machine whose disk is nearly full.
  SVC_DISK_RESERVE_MB: "1024",
  // Crash tests lose the warm pool again and again, and the node makes it anew beside them: a few containers show as much as many.
  SVC_POOL_CEILING: "8",
  // A test fills a whole disk.
  SVC_BASE_DISK_MB: "1024",
  // Tests build from local images, and no build may leave an image that another build could use.
  SVC_BUILD_LOCAL_IMAGES: "*",
  // A test searches the logs for secrets.
  SVC_LOG_LEVEL: "debug",
  // Receivers of the tests listen here.
  SVC_WEBHOOK_ALLOW: "127.0.0.1",
};
const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
const missing = Object.entries(wanted)
  .filter(([name]) => !lines.some((line) => line.replace(/^export /, "").startsWith(`${name}=`)))
  .map(([name, value]) => `${name}=${value}`);
if (missing.length > 0) {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(file, `${[...lines, ...missing].join("\n")}\n`, { mode: 0o600 });
}
console.log(`${file}: ${missing.length === 0 ? "as it was" : missing.join(", ")}`);
