/** The operator's own settings: what the machine has, what a checkout has, and which of them hold. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");

interface Machine {
  /** Text of the machine's file; undefined: there is none. */
  readonly machine?: string;
  readonly checkout?: string;
  readonly runs?: boolean;
}

/** Runs a function of the library for a machine and a checkout that are directories of this test. */
function run(command: string, { machine, checkout, runs = false }: Machine) {
  const home = mkdtempSync(join(tmpdir(), "svc-settings-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  for (const name of ["etc", "own"]) mkdirSync(join(home, name));
  if (machine !== undefined) writeFileSync(join(home, "etc/config.env"), machine);
  if (checkout !== undefined) writeFileSync(join(home, "own/config.env"), checkout);
  const script = `set -euo pipefail
here=${library}/..
. ${library}/environment.sh; . ${library}/ui.sh; . ${library}/instance.sh; . ${library}/engine.sh; . ${library}/services.sh
CONFIG_DIR=${home}/etc OWN_DIR=${home}/own
. ${library}/own-settings.sh
service_runs() { ${runs ? "true" : "false"}; }
${command}`;
  const { status, stdout, stderr } = spawnSync("bash", ["-pc", script], { encoding: "utf8" });
  return { status, stdout: stdout.trim(), stderr: stderr.replaceAll(home, "HOME") };
}

const MACHINE = 'SVC_DOMAIN="a.example"\nDATABASE_URL="postgresql://u:p@h/d"\n';

test("a checkout without settings keeps all of the machine's, while the platform runs and while it does not", () => {
  for (const runs of [true, false]) {
    expect(run("wanted_settings add", { machine: MACHINE, runs }).stdout).toBe(MACHINE.trim());
    const { status, stdout } = run("settings_stay add", { machine: MACHINE, runs });
    expect([status, stdout]).toEqual([0, "this checkout lacks SVC_DOMAIN DATABASE_URL: kept"]);
  }
});

test("a setting of the checkout is added to those of the machine, or replaces its own earlier value", () => {
  const checkout = "# mine\nexport SVC_MAX_SANDBOXES=7\nSVC_DOMAIN='b.example'\n";
  expect(run("wanted_settings add", { machine: MACHINE, checkout }).stdout.split("\n")).toEqual([
    'SVC_DOMAIN="b.example"',
    'DATABASE_URL="postgresql://u:p@h/d"',
    'SVC_MAX_SANDBOXES="7"',
  ]);
});

test("a checkout that would change settings of a running platform is stopped, with the difference and without secrets", () => {
  const checkout = "SVC_DOMAIN=b.example\nSVC_SEED=very-secret-seed\nDATABASE_URL=postgresql://u:other@h/e\n";
  const { status, stdout, stderr } = run("settings_stay add", { machine: MACHINE, checkout, runs: true });
  expect(status).toBe(1);
  expect(stderr).toContain("SVC_DOMAIN: a.example -> b.example");
  expect(stderr).toContain("SVC_SEED: (not set) -> (a secret)");
  expect(stderr).toContain("--change-settings");
  expect(stdout + stderr).not.toMatch(/very-secret|u:p@|u:other@/);
});

test("the same settings in another order and quoting are no change", () => {
  const checkout = "DATABASE_URL='postgresql://u:p@h/d'\n\nSVC_DOMAIN=a.example";
  expect(run("settings_stay add", { machine: MACHINE, checkout, runs: true }).status).toBe(0);
});

test("`--change-settings` gives the machine exactly the checkout's settings, and refuses a checkout without a file", () => {
  const checkout = "SVC_DOMAIN=b.example\n";
  expect(run("wanted_settings replace", { machine: MACHINE, checkout }).stdout).toBe('SVC_DOMAIN="b.example"');
  const { status, stdout } = run("settings_stay replace", { machine: MACHINE, checkout, runs: true });
  expect(status).toBe(0);
  expect(stdout).toContain("SVC_DOMAIN: a.example -> b.example");
  expect(stdout).toContain("DATABASE_URL: postgresql://…@h/d -> (not set)");
  expect(run("wanted_settings replace", { machine: MACHINE }).stderr).toContain("would remove all settings");
});

test("a value with quotes, dollars and backslashes is the same after it was written and read", () => {
  const checkout = `SVC_A=a"b$c\\d\`e f=g\n`;
  const written = run("wanted_settings add", { checkout }).stdout;
  expect(run("setting $OWN_DIR/config.env SVC_A", { checkout: `${written}\n` }).stdout).toBe('a"b$c\\d`e f=g');
  expect(run("settings_stay add", { machine: `${written}\n`, checkout, runs: true }).status).toBe(0);
});

const KEYS = `orchestrator=$CONFIG_DIR/orchestrator.env agent=$CONFIG_DIR/agent.env secrets_key=$CONFIG_DIR/secrets.key
chosen() { local value; value=$(setting "$CONFIG_DIR/config.env" "$1"); printf '%s' "\${value:-$2}"; }
. ${library}/secrets/keys.sh
new_keys_are_harmless && echo fine`;

test("a new machine gets new keys; one whose database has records that a lost key opens does not, and the refusal names them", () => {
  const home = mkdtempSync(join(tmpdir(), "svc-keys-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const database = join(home, "svc.db");
  const machine = `SVC_DATABASE="${database}"\nSVC_STATE_DIR="${home}"\n`;
  expect(run(KEYS, { machine }).stdout).toBe("fine");
  new Database(database).exec("create table sandboxes (id); create table secrets (id)").close();
  expect(run(KEYS, { machine }).stdout).toBe("fine");
  new Database(database).exec("insert into sandboxes values (1), (2); insert into secrets values (1)").close();
  const { status, stderr } = run(KEYS, { machine });
  expect(status).toBe(1);
  expect(stderr).toContain("SVC_SEED in HOME/etc/orchestrator.env opens access tokens of sandboxes (2)");
  expect(stderr).toContain("secrets.key in HOME/etc/secrets.key opens secrets of projects (1)");
  expect(stderr).not.toContain("SVC_NODE_ID in");
  writeFileSync(database, "damaged".repeat(1_000));
  expect(run(KEYS, { machine }).stderr).toContain("which cannot be read now: file is not a database");
});
