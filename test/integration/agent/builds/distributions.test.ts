/** The scripts that prepare an image for sandboxes, run with the description of a distribution and a package manager of the test's own. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CHECK_SCRIPT, PACKAGES_SCRIPT } from "../../../../agent/builds/images/provision-script.ts";

/** An image that has nothing but package managers, which say what they are asked for. */
function image(release: string, managers: readonly string[]) {
  const root = mkdtempSync(join(tmpdir(), "svc-distribution-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, "bin"));
  writeFileSync(join(root, "os-release"), release);
  for (const name of managers)
    writeFileSync(join(root, "bin", name), '#!/bin/sh\necho "${0##*/} $*"\n', { mode: 0o755 });
  return (script: string) =>
    spawnSync("/bin/sh", ["-c", script.replaceAll("/etc/os-release", join(root, "os-release"))], {
      env: { PATH: join(root, "bin") },
      encoding: "utf8",
    });
}

test.each([
  ["Rocky Linux", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf", "dnf install -y"],
  ["Amazon Linux 2", 'ID="amzn"\nID_LIKE="centos rhel fedora"\n', "yum", "yum install -y"],
  ["UBI minimal", 'ID="rhel"\nID_LIKE="fedora"\n', "microdnf", "microdnf install -y"],
  ["Oracle Linux", 'ID="ol"\nID_LIKE="fedora"\n', "dnf", "dnf install -y"],
  ["openSUSE Leap", 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper", "zypper --non-interactive install"],
  ["Linux Mint", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', "apt-get", "apt-get install -y"],
])("an image of %s gets its programs from its own package manager", (_name, release, manager, asked) => {
  const run = image(release, [manager]);
  expect(run(CHECK_SCRIPT).status).toBe(0);
  const { stdout, status } = run(PACKAGES_SCRIPT);
  expect(stdout).toMatch(new RegExp(`^${asked} .*\\bbash curl iproute2? procps(-ng)? sudo tar\\b`, "m"));
  expect(status).toBe(4);
});

test("an image of a distribution without a package manager that is known is refused by its name", () => {
  const { status, stderr } = image("ID=nixos\n", [])(CHECK_SCRIPT);
  expect([status, stderr]).toEqual([3, expect.stringContaining("ID='nixos' is not supported") as string]);
});
