/** What a user's own sudo takes away: the name of the platform that a script is for. */

import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const scripts = join(import.meta.dirname, "../../../scripts");

/** Runs a command as sudo does, which passes few variables on. */
function sudo(named: string | undefined, ...words: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "svc-sudo-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "sudo");
  writeFileSync(file, '#!/bin/bash\nenv -u SVC_INSTANCE SUDO_UID=1000 "$@"\nexit $?\n');
  chmodSync(file, 0o755);
  const env = { PATH: process.env["PATH"], ...(named === undefined ? {} : { SVC_INSTANCE: named }) };
  return spawnSync(file, words, { encoding: "utf8", env });
}

const DROPPED = "error: sudo has dropped SVC_INSTANCE=b, so this would be done to the platform without a name\n";
const asRoot = [
  "bash",
  "-pc",
  `id() { echo 0; }; . ${scripts}/lib/root.sh; become_root x; echo "[\${SVC_INSTANCE:-}]"`,
];

test.each([
  ["a script", asRoot],
  ["the command", [join(scripts, "svc"), "--version"]],
])("%s behind sudo refuses to go on to another platform than the user has named", (_what, words) => {
  const { status, stdout, stderr } = sudo("b", ...words);
  expect([status, stdout, stderr.slice(0, DROPPED.length)]).toEqual([2, "", DROPPED]);
  expect(stderr).toContain("sudo env SVC_INSTANCE=b COMMAND");
});

test("behind sudo a name that is given to the script itself counts, and so does none", () => {
  expect(sudo("b", "env", "SVC_INSTANCE=c", ...asRoot)).toMatchObject({ status: 0, stdout: "[c]\n" });
  expect(sudo("b", "env", "SVC_INSTANCE=", ...asRoot)).toMatchObject({ status: 0, stdout: "[]\n" });
  expect(sudo(undefined, ...asRoot)).toMatchObject({ status: 0, stdout: "[]\n" });
});

test("a script that asks for root itself passes the name on", () => {
  const words = [
    "bash",
    "-pc",
    `id() { echo 1000; }; sudo() { echo "$@"; }; exec() { "$@"; }
    . ${scripts}/lib/root.sh; SVC_INSTANCE=b become_root x y`,
  ];
  const proxies = ["-u", "http_proxy", "-u", "https_proxy", "-u", "HTTP_PROXY", "-u", "HTTPS_PROXY"];
  const npm = [
    "NODE_EXTRA_CA_CERTS",
    "npm_config_registry",
    "npm_config_cafile",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_CAFILE",
  ];
  const none = [...proxies, "-u", "all_proxy", "-u", "ALL_PROXY", ...npm.flatMap((name) => ["-u", name])];
  const { stdout } = spawnSync("env", [...none, ...words], { encoding: "utf8" });
  expect(stdout).toMatch(/^asking for root with sudo\nenv PATH=\S+ SVC_INSTANCE=b CI=\S* x y\n/);
  // And the proxies, which sudo drops: by name, so that no password of one is among the words of a command.
  const proxy = ["https_proxy=http://me:planted@proxy:3128", "HTTP_PROXY=http://proxy:3128"];
  const behind = spawnSync("env", [...none, ...proxy, ...words], { encoding: "utf8" });
  expect(behind.stdout).toMatch(/^asking.*\n--preserve-env=https_proxy,HTTP_PROXY,no_proxy,NO_PROXY env PATH=.* x y\n/);
  expect(behind.stdout).not.toContain("planted");
  // And where npm's packages come from, with the authority of a company.
  const company = ["NODE_EXTRA_CA_CERTS=/etc/ssl/company.pem", "npm_config_registry=https://me:planted@npm.example"];
  const inside = spawnSync("env", [...none, ...company, ...words], { encoding: "utf8" });
  expect(inside.stdout).toMatch(/\n--preserve-env=NODE_EXTRA_CA_CERTS,npm_config_registry,no_proxy,NO_PROXY env PATH=/);
  expect(inside.stdout).not.toContain("planted");
});
