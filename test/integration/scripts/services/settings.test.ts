/** The step of `up` that makes a machine's settings: its files, who may read them, and what stays at the next run. */

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { settingsIn } from "../../../../shared/program/service/settings-lines.ts";

const checkout = join(import.meta.dirname, "../../../..");

/** A machine whose places are directories of this test. */
function machine() {
  const home = mkdtempSync(join(tmpdir(), "svc-settings-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const own = join(home, "checkout");
  for (const name of ["checkout/scripts", "checkout/.svc", "app"]) mkdirSync(join(home, name), { recursive: true });
  for (const name of ["lib", "host"])
    cpSync(join(checkout, "scripts", name), join(own, "scripts", name), { recursive: true });
  symlinkSync(join(checkout, "node_modules"), join(own, "node_modules"));
  const library = join(own, "scripts/lib/instance.sh");
  const places = { CONFIG_DIR: "etc", STATE_DIR: "state", RUN_DIR: "run", LOG_DIR: "log", APP: "app" };
  const text = Object.entries(places).reduce(
    (all, [name, directory]) => all.replace(new RegExp(`^${name}=.*$`, "m"), `${name}=${home}/${directory}`),
    readFileSync(library, "utf8"),
  );
  // In the place of the programs' own user, which a machine without the platform lacks.
  writeFileSync(library, text.replace(/^SERVICE_USER=.*$/m, "SERVICE_USER=daemon"));
  // The programs as this step uses them: their settings, whether these are right, and the tokens of a node.
  const program = `#!/bin/bash
case $2 in
  --help) printf '  SVC_POOL_SIZE (default 3)\\n' ;;
  --node-tokens) printf 'SVC_NODE_TOKEN=from:%s\\nSVC_ORCHESTRATOR_TOKEN=to:%s\\n' "$SVC_NODE_KEY" "$SVC_NODE_KEY" ;;
esac`;
  writeFileSync(join(home, "app/node"), program, { mode: 0o755 });
  for (const name of ["orchestrator", "agent", "edge"]) writeFileSync(join(home, `app/${name}.js`), "");
  const etc = join(home, "etc");
  return {
    etc,
    set: (lines: string) => writeFileSync(join(own, ".svc/config.env"), lines),
    // Of the default instance, as whose the directories above stand, whichever the run of the tests has.
    run: (how = "add") => {
      const env = { ...process.env, SVC_INSTANCE: "" };
      return spawnSync(join(own, "scripts/host/services/settings"), [how], { encoding: "utf8", env });
    },
    read: (name: string) => settingsIn(readFileSync(join(etc, name), "utf8")),
    modeOf: (name: string) => (statSync(join(etc, name)).mode & 0o777).toString(8),
    hasRoot: (name: string) => statSync(join(etc, name)).uid === 0 && statSync(join(etc, name)).gid === 0,
  };
}

const FILES = ["orchestrator.env", "orchestrator.own.env", "agent.env", "agent.own.env", "config.env", "node.env"];

test("all settings are root's alone, keys stay, and the one variable that Node reads is in a file of its own", () => {
  const { etc, set, run, read, modeOf, hasRoot } = machine();
  set("SVC_POOL_SIZE=7\nNODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt\n");
  const first = run();
  expect(first.status, first.stderr + first.stdout).toBe(0);
  for (const name of FILES) expect([name, modeOf(name), hasRoot(name)]).toEqual([name, "600", true]);
  expect(read("node.env")).toEqual({ NODE_EXTRA_CA_CERTS: "/etc/ssl/certs/ca-certificates.crt" });
  expect(read("orchestrator.own.env")).toMatchObject({ SVC_POOL_SIZE: "7" });
  const made = read("orchestrator.env");
  expect(made["SVC_NODE_KEY"]).toMatch(/^[\w-]{43}$/);
  expect(read("agent.env")).toMatchObject({ SVC_NODE_TOKEN: `from:${made["SVC_NODE_KEY"] ?? ""}` });

  // An earlier version let the programs' group read them.
  chmodSync(join(etc, "orchestrator.env"), 0o640);
  chownSync(join(etc, "orchestrator.env"), 0, 1);
  rmSync(join(etc, "node.env"));
  set("");
  const second = run("replace");
  expect(second.status, second.stderr + second.stdout).toBe(0);
  expect([modeOf("orchestrator.env"), hasRoot("orchestrator.env")]).toEqual(["600", true]);
  expect(read("orchestrator.env")).toEqual(made);
  expect(read("node.env")).toEqual({});
});
