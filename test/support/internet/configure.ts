/**
 * `tsx test/support/internet/configure.ts`, before `scripts/up`: settings with which the platform of SVC_INSTANCE lives
 * on the test internet. Names are asked there, its authority is trusted, and templates may be built from the machine's own
 * images. What notices that a program was away comes round sooner than on a person's platform: crash tests wait for it
 * after every kill. Repeating it changes nothing.
 *
 * While no internet is up, its resolver is nowhere: what the platform asks does not leave the machine. With `--remove` that
 * route is removed again. Only the one address: machines are met whose package mirror is in these ranges.
 */

import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { checkout } from "../platform/platform.ts";
import { run } from "../platform/programs.ts";
import { authorityFile, makeAuthority } from "./certificates.ts";
import { ADDRESS, internetPlan } from "./plan.ts";

/** Comes after every other route. */
const LAST_METRIC = String(2 ** 32 - 1);
const nowhere = ["unreachable", `${ADDRESS.dns}/32`, "metric", LAST_METRIC];
if (process.argv.includes("--remove")) {
  await run("ip", ["route", "del", ...nowhere]).catch(() => undefined);
  process.exit();
}
await run("ip", ["route", "replace", ...nowhere]);

const instance = process.env.SVC_INSTANCE ?? "test";
// A person's own platform must not be cut off from the real internet.
if (instance === "") throw new Error("the default instance is not for tests: set SVC_INSTANCE");
const plan = internetPlan(instance);
await makeAuthority(plan.authorityDirectory);

const directory = `${checkout}.svc-${instance}`;
const file = `${directory}/config.env`;
const wanted = {
  SVC_DNS_UPSTREAM: ADDRESS.dns,
  NODE_EXTRA_CA_CERTS: authorityFile(plan.authorityDirectory),
  SVC_HEARTBEAT_EVERY_MS: "1000",
  SVC_RECONCILE_EVERY_MS: "1000",
  SVC_END_GRACE_MS: "10000",
  // Those that tests build from, and all that a build must not leave for another one.
  SVC_BUILD_LOCAL_IMAGES: "*",
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
