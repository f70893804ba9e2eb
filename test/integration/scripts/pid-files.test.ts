/** Where there is no systemd: the scripts recognise the platform's programs also without the files with their process ids. */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");

/** A supervisor with its program, as services.sh starts them; both end with the test. */
async function startedProgram(suffix: string) {
  const home = mkdtempSync(join(tmpdir(), "svc-pids-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  for (const name of ["run", "app"]) mkdirSync(join(home, name));
  const program = join(home, "app/orchestrator.js");
  writeFileSync(program, "console.log(process.pid); setInterval(() => {}, 60_000);");
  writeFileSync(join(home, "app/supervise"), `#!/bin/bash -p\n"${process.execPath}" ${program} &\nwait\n`, {
    mode: 0o755,
  });
  const started = spawn("/bin/bash", ["-p", join(home, "app/supervise"), suffix, "orchestrator"], { detached: true });
  onTestFinished(() => void process.kill(-(started.pid ?? 0), "SIGKILL"));
  const [said] = (await once(started.stdout, "data")) as [Buffer];
  return { home, process: started, supervisor: String(started.pid), program: said.toString().trim() };
}

function ask(home: string, suffix: string, command: string) {
  const script = `set -euo pipefail
. ${library}/environment.sh; . ${library}/engine.sh; . ${library}/instance.sh; . ${library}/services.sh
SUFFIX=${suffix} APP=${home}/app RUN_DIR=${home}/run
under_systemd() { false; }
${command}`;
  return spawnSync("bash", ["-pc", script], { encoding: "utf8" });
}

test("a program whose files with process ids were removed is found, and the files are written again", async () => {
  const { home, supervisor, program } = await startedProgram("-abc");
  expect(ask(home, "-abc", "service_runs orchestrator").status).toBe(0);
  const ids = () =>
    ["orchestrator.supervisor.pid", "orchestrator.pid"].map((name) => readFileSync(join(home, "run", name), "utf8"));
  expect(ids()).toEqual([`${supervisor}\n`, `${program}\n`]);
  rmSync(join(home, "run"), { recursive: true });
  expect(ask(home, "-abc", "service_pid orchestrator").stdout.trim()).toBe(program);
  expect(ids()).toEqual([`${supervisor}\n`, `${program}\n`]);
});

test("a file with the id of another process does not hide a program that runs", async () => {
  const { home, supervisor } = await startedProgram("-abc");
  writeFileSync(join(home, "run/orchestrator.supervisor.pid"), `${process.pid}\n`);
  expect(ask(home, "-abc", "supervisor orchestrator").stdout).toBe(supervisor);
});

test("the program of another instance, and another program of the same one, are not taken for it", async () => {
  const { home } = await startedProgram("-abc");
  for (const [suffix, program] of [
    ["-ab", "orchestrator"],
    ["''", "orchestrator"],
    ["-abc", "agent"],
  ] as const) {
    expect(ask(home, suffix, `service_runs ${program}`).status, `${suffix} ${program}`).toBe(1);
    expect(existsSync(join(home, `run/${program}.pid`))).toBe(false);
  }
});

test("stopping a program whose files were removed ends its supervisor with SIGTERM", async () => {
  const { home, process: supervisor } = await startedProgram("-abc");
  const ended = once(supervisor, "exit");
  expect(ask(home, "-abc", "service_stop orchestrator").status).toBe(0);
  expect(await ended).toEqual([null, "SIGTERM"]);
});
