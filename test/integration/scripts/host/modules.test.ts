/** Which npm packages a machine installs: what builds and runs the programs, and the tools of checks and tests where people work. */

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const checkout = join(import.meta.dirname, "../../../..");

interface Entry {
  readonly version?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
}
type Packages = Readonly<Record<string, Entry>>;

const NODE: Packages = { [`node_modules/node-linux-${process.arch}`]: { version: process.versions.node } };
const LOCKED: Packages = {
  "": {},
  ...NODE,
  "node_modules/program": { version: "1.0.0" },
  "node_modules/tool": { version: "1.0.0", dev: true },
  "node_modules/sometimes": { version: "1.0.0", devOptional: true },
  "node_modules/elsewhere": { version: "1.0.0", optional: true },
};
const without = (packages: Packages, ...names: readonly string[]) =>
  Object.fromEntries(
    Object.entries(packages).filter(([path]) => !names.some((name) => path === `node_modules/${name}`)),
  );
const LEAN = without(LOCKED, "", "tool", "elsewhere");
const WHOLE = without(LOCKED, "", "elsewhere");

/** A checkout with these packages, on a machine with this role. npm only notes how it is called, and installs what the test says. */
function machine(role: string, installed: Packages, installs: Packages = installed, version = "exit 0") {
  const home = mkdtempSync(join(tmpdir(), "svc-modules-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const own = join(home, "checkout");
  for (const name of ["lib", "host/programs"])
    cpSync(join(checkout, "scripts", name), join(own, "scripts", name), { recursive: true });
  const library = join(own, "scripts/lib/instance.sh");
  const text = readFileSync(library, "utf8").replace(/^CONFIG_DIR=.*$/m, `CONFIG_DIR=${home}/etc`);
  writeFileSync(library, text);
  for (const name of ["etc", "bin", "checkout/node_modules/.bin"]) mkdirSync(join(home, name), { recursive: true });
  writeFileSync(join(home, "etc/role"), `${role}\n`);
  symlinkSync(process.execPath, join(own, "node_modules/.bin/node"));
  symlinkSync(join(checkout, "node_modules/better-sqlite3"), join(own, "node_modules/better-sqlite3"));
  writeFileSync(join(own, "package.json"), "{}");
  const lock = (packages: Packages) => JSON.stringify({ packages }, undefined, 2);
  writeFileSync(join(own, "package-lock.json"), lock(LOCKED));
  const kept = join(own, "node_modules/.package-lock.json");
  writeFileSync(kept, lock(installed));
  writeFileSync(join(home, "installs"), lock(installs));
  const npm = `#!/bin/bash\n[ "$*" != --version ] || ${version}\nprintf '%s ' "$@" >${home}/npm\ncp ${home}/installs ${kept}\n`;
  writeFileSync(join(home, "bin/npm"), npm, { mode: 0o755 });
  const ran = spawnSync(join(own, "scripts/host/programs/modules"), {
    encoding: "utf8",
    env: { PATH: `${home}/bin:${process.env["PATH"]}` },
  });
  const calls = spawnSync("cat", [join(home, "npm")], { encoding: "utf8" }).stdout;
  return { status: ran.status, said: `${ran.stdout}${ran.stderr}`, calls };
}

test.each(["node", "edge"])("a new machine with the role %s installs no tools of checks and tests", (role) => {
  const { status, said, calls } = machine(role, {}, LEAN);
  expect(said).toContain("installed without the tools of checks and tests, Node ");
  expect(status).toBe(0);
  expect(calls).toMatch(/^ci --omit=dev --include=optional /);
});

test("an owner of the checkout who cannot run npm, as one in root's home directory, is named before npm is asked for packages", () => {
  const { status, said, calls } = machine("", {}, WHOLE, "{ echo 'npm: Permission denied' >&2; exit 126; }");
  expect(status).toBe(1);
  expect(said).toMatch(
    /error: \S+, who owns \S+, cannot run npm: npm: Permission denied\ninstall Node\.js for all users/,
  );
  expect(calls).toBe("");
});

test.each(["", "orchestrator"])("a machine with the role '%s' installs everything", (role) => {
  const { status, calls } = machine(role, {}, WHOLE);
  expect(status).toBe(0);
  expect(calls).toMatch(/^ci --include=dev --include=optional /);
});

test("a node whose checkout has the tools keeps them when another package changes", () => {
  const { status, calls } = machine("node", without(WHOLE, "program"), WHOLE);
  expect(status).toBe(0);
  expect(calls).toMatch(/^ci --include=dev /);
});

test.each([
  ["a node without the tools", "node", LEAN],
  ["a node without what only tools need", "node", without(LEAN, "sometimes")],
  ["a node with the tools", "node", WHOLE],
  ["a machine with all", "", WHOLE],
])("%s has nothing to install", (_what, role, installed) => {
  const { status, said, calls } = machine(role, installed);
  expect(status).toBe(0);
  expect(said).toContain("as in package-lock.json");
  expect(calls).toBe("");
});

test.each([
  ["a node without a package of the programs", "node", without(LEAN, "program"), LEAN],
  [
    "a node with another version of a tool",
    "node",
    { ...WHOLE, "node_modules/tool": { version: "0.9.0", dev: true } },
    WHOLE,
  ],
  ["a machine without the tools on which people work", "", LEAN, WHOLE],
])("%s installs", (_what, role, installed, installs) => {
  const { status, calls } = machine(role, installed, installs);
  expect(status).toBe(0);
  expect(calls).toMatch(/^ci /);
});
