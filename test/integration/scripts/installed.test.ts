/** The directories that the scripts share between instances: who may read and write what is installed. */

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");

function installedTree(): string {
  const home = mkdtempSync(join(tmpdir(), "svc-installed-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const version = join(home, "installed/app/1234/node_modules");
  mkdirSync(version, { recursive: true });
  writeFileSync(join(version, "addon.node"), "");
  writeFileSync(join(home, "installed/app/1234/node"), "", { mode: 0o755 });
  mkdirSync(join(home, "installed/test"));
  symlinkSync("1234", join(home, "installed/app/current"));
  return home;
}

function sharedDirectories(home: string) {
  const script = `set -euo pipefail
. ${library}/environment.sh; . ${library}/ui.sh; . ${library}/installed.sh
INSTALLED=${home}/installed SHARED_STATE=${home}/state
shared_directories`;
  return spawnSync("bash", ["-pc", script], { encoding: "utf8" });
}

function modes(home: string): Record<string, string> {
  const app = join(home, "installed/app");
  const names = readdirSync(app, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith("current"));
  return Object.fromEntries(names.map((name) => [name, (lstatSync(join(app, name)).mode & 0o777).toString(8)]));
}

const PUBLIC = {
  "1234": "755",
  "1234/node": "755",
  "1234/node_modules": "755",
  "1234/node_modules/addon.node": "644",
};

test.each([
  ["077, which keeps other users out", "go-rwx"],
  ["027, which keeps the orchestrator's user out", "g-w,o-rwx"],
  ["000, with which any user could change a program of root", "go+w"],
])("an installed version that an earlier set-up left with the modes of umask %s, is repaired", (_umask, change) => {
  const home = installedTree();
  spawnSync("chmod", ["-R", change, join(home, "installed")]);
  expect(modes(home)).not.toEqual(PUBLIC);
  const { status, stdout } = sharedDirectories(home);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^modes of \d files and directories below .* repaired\n$/);
  expect(modes(home)).toEqual(PUBLIC);
  expect(sharedDirectories(home)).toMatchObject({ status: 0, stdout: "" });
});

test("the repair of modes leaves what is not installed for all: a directory of tests, and the target of a link", () => {
  const home = installedTree();
  for (const name of ["private", "installed/test/private"]) writeFileSync(join(home, name), "", { mode: 0o600 });
  symlinkSync(join(home, "private"), join(home, "installed/app/1234/link"));
  chmodSync(join(home, "installed/app/1234"), 0o700);
  expect(sharedDirectories(home).status).toBe(0);
  for (const name of ["private", "installed/test/private"])
    expect(lstatSync(join(home, name)).mode & 0o777, name).toBe(0o600);
});

test.each([
  ["a mount point is emptied, and stays without an error", "*/disk", 0],
  ["what cannot be removed and is no mount point is an error", "nothing", 1],
])("of a purge: %s", (_what, mountPoints, expected) => {
  const home = installedTree();
  mkdirSync(join(home, "state/disk"), { recursive: true });
  writeFileSync(join(home, "state/disk/file"), "");
  // Stands for rm at a mount point: everything below it goes, the directory itself is busy.
  const script = `set -euo pipefail
. ${library}/environment.sh; . ${library}/installed.sh
rm() { find "$3" ! -type d -delete; return 1; }
mountpoint() { [[ $3 == ${mountPoints} ]]; }
remove_trees ${home}/state`;
  expect(spawnSync("bash", ["-pc", script]).status).toBe(expected);
  expect(readdirSync(join(home, "state/disk"))).toEqual([]);
});

test("the scripts name the packages that up has installed, and go on where it has installed none", () => {
  const home = mkdtempSync(join(tmpdir(), "svc-packages-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const named = () => {
    const script = `set -euo pipefail; . ${library}/installed.sh; SHARED_STATE=${home}
packages=$(installed_packages); echo "goes on: $packages"`;
    return spawnSync("bash", ["-pc", script], { encoding: "utf8" }).stdout;
  };
  expect(named()).toBe("goes on: \n");
  writeFileSync(join(home, "packages"), "nftables\ncurl\nnftables\n");
  expect(named()).toBe("goes on: curl nftables\n");
});

test.each([
  [
    "nothing on the machine answers",
    { module: 1, resolver: 2, said: "installed 1: libnss-myhostname\n", listed: "libnss-myhostname\n" },
  ],
  ["libc has a module for them", { module: 0, resolver: 2, said: "all there\n", listed: "" }],
  ["a name server of the machine answers", { module: 1, resolver: 0, said: "all there\n", listed: "" }],
])("up installs the package that resolves names below localhost only where it is needed: %s", (_what, given) => {
  const state = mkdtempSync(join(tmpdir(), "svc-packages-"));
  onTestFinished(() => rmSync(state, { recursive: true }));
  writeFileSync(join(state, "packages"), "");
  // Every other package is there, apt does nothing, and the list goes to the test's directory.
  const script = `
grep() { case "$*" in *myhostname*) return ${given.module} ;; *) command grep "$@" ;; esac; }
timeout() { return ${given.resolver}; }
dpkg-query() { case "$*" in *libnss-myhostname) ;; *) echo installed ;; esac; }
apt-get() { :; }
install() { SHARED_STATE=${state}; }
. "$0"`;
  const packages = join(library, "../host/machine/packages");
  const { status, stdout } = spawnSync("bash", ["-pc", script, packages], { encoding: "utf8" });
  expect(status).toBe(0);
  expect(stdout.endsWith(given.said)).toBe(true);
  expect(readFileSync(join(state, "packages"), "utf8")).toBe(given.listed);
});
