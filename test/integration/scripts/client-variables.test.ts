/** What clients need: a list of variables with every address that the published SDKs read, and the page about versions. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const list = `${root}scripts/host/services/client-variables`;
const CONSOLE = "http://api/console/";
const printed = (console: string) =>
  execFileSync(list, ["http://api", "http://edge", "svc_00ff", console], { encoding: "utf8" }).trim().split("\n");
const variables = printed(CONSOLE);
const ours = variables.map((line) => line.split("=", 1)[0] ?? "").filter((name) => name.startsWith("E2B_"));

/** Variables of the SDK that name no address and no key, or that the addresses of the list make useless. */
const OTHERS: Readonly<Record<string, string>> = {
  E2B_DOMAIN: "the part of addresses that are not set; the platform's answers have its own domain",
  E2B_DEBUG: "the SDK's own test mode, which calls no API",
  E2B_USER_AGENT_SOURCE: "a name for the log of the service",
  E2B_API_CONNECTIONS: "the client's tuning",
  E2B_API_INFLIGHT_REQUESTS: "the client's tuning",
  E2B_ENVD_INFLIGHT_REQUESTS: "the client's tuning",
  E2B_ENVD_RPC_CONNECTIONS: "the client's tuning",
  E2B_ENVD_RPC_INFLIGHT_REQUESTS: "the client's tuning",
};

test("the list has every variable that the published SDKs read, except for those with a reason", () => {
  const packages = ["e2b", "@e2b/code-interpreter"].map((name) => createRequire(import.meta.url).resolve(name));
  const read = packages.flatMap((file) => readFileSync(file, "utf8").match(/\bE2B_[A-Z_]+\b/g) ?? []);
  expect([...new Set(read)].sort()).toEqual([...ours, ...Object.keys(OTHERS)].sort());
});

test("a key has the prefix of each family of names", () => {
  expect(variables).toContain("SVC_API_KEY=svc_00ff");
  expect(variables).toContain("E2B_API_KEY=e2b_00ff");
});

test("the console has an address where it is served, and none where it is off", () => {
  const line = `SVC_CONSOLE_URL=${CONSOLE}`;
  expect(variables).toContain(line);
  expect(printed("")).toEqual(variables.filter((each) => each !== line));
});

test.each(["README.md", "docs/using.md"])("%s names the whole list where it names the first of it", (page) => {
  const [paragraph = ""] = readFileSync(root + page, "utf8")
    .split("\n\n")
    .filter((each) => each.includes(".svc/env` sets"));
  for (const name of ours) expect(paragraph).toContain(`\`${name}\``);
});

test.each(["scripts/up", "scripts/lib/programs/dev.ts", "scripts/host/services/access"])(
  "%s has no list of its own",
  (script) => {
    const text = readFileSync(root + script, "utf8");
    expect(text).not.toMatch(/E2B_[A-Z_]+=/);
    expect(text).toMatch(/client-variables|\$OWN_DIR\/env/);
  },
);

const using = readFileSync(`${root}docs/using.md`, "utf8").replaceAll(/\n {2}/g, " ");

/** What the page says from the first mention of the words on. */
function saidOf(words: string): string {
  const place = using.indexOf(words);
  expect(place).toBeGreaterThan(0);
  return using.slice(place, place + 500);
}

test.each([
  ["npm `e2b`", "2.7.0"],
  ["Python `e2b`", "2.7"],
  ["npm `@e2b/code-interpreter`", "2.7.0"],
  ["Python `e2b-code-interpreter`", "2.9.0"],
  ["clients of gRPC-Web", "any"],
  ["Python clients from 1.5.0", "name, type and path alone"],
  ["`https://<port>-<id>.<domain>` themselves", "E2B_DOMAIN=<domain>"],
  ["asks a name server itself", "E2b-Sandbox-Port: 8000"],
])("docs/using.md says from which version on a client works, or what it needs: %s", (client, answer) => {
  expect(saidOf(client)).toContain(answer);
});

test.each([
  ["FUSE file systems", "Use a volume"],
  ["HTTP/2 without TLS, gRPC among them", "gRPC-Web"],
  ["`bwrap`", "`codex --sandbox danger-full-access`"],
  ["Landlock", "Function not implemented"],
  ["Agents whose sandbox is opt-in", "need no flag"],
  ["`/dev/net/tun`", "--tun=userspace-networking"],
  ["packet sockets are refused", "`--unprivileged`"],
  ["32-bit programs", "take 64-bit builds"],
  ["With musl (Alpine)", "dynamic_shared_memory_type=mmap"],
  ["64 MiB of shared memory", "--disable-dev-shm-usage"],
])("docs/using.md names what a sandbox does not have, with the way out: %s", (missing, way) => {
  expect(saidOf(missing)).toContain(way);
});
