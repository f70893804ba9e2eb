/** The units of systemd: what they promise of themselves, by systemd's own tools where the machine has them. */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { AGENT_CAPABILITIES } from "../../../machine/checks/programs.ts";

const units = join(import.meta.dirname, "../../../scripts/systemd");
const textOf = (program: string) => readFileSync(join(units, `svc-${program}.service`), "utf8");

const unitFor = (program: string) => textOf(program).replaceAll("@SUFFIX@", "");

const hasAnalyze = (() => {
  try {
    execFileSync("systemd-analyze", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test.each([
  ["orchestrator", "notify"],
  ["agent", "notify"],
  ["edge", "exec"],
])("the %s is of type %s, and its event loop feeds the watchdog", (program, type) => {
  const text = textOf(program);
  expect(text).toMatch(new RegExp(`^Type=${type}$`, "m"));
  expect(text).toMatch(/^WatchdogSec=60$/m);
  // One whose start takes long, as while its database does not answer after a power cut, is not given up.
  expect(text).toMatch(/^StartLimitIntervalSec=60\nStartLimitBurst=10$/m);
  // systemd-notify is a child of the program.
  expect(text).toMatch(/^NotifyAccess=all$/m);
});

test.each(["orchestrator", "agent", "edge"])("no setting with a secret is in the environment of the %s", (program) => {
  const text = textOf(program);
  expect(text.match(/^LoadCredential=.*$/gm)).toEqual([
    `LoadCredential=settings:/etc/svc@SUFFIX@/${program}.env`,
    `LoadCredential=own-settings:/etc/svc@SUFFIX@/${program}.own.env`,
  ]);
  // Node reads this one before any program.
  expect(text.match(/^EnvironmentFile=.*$/gm)).toEqual(["EnvironmentFile=-/etc/svc@SUFFIX@/node.env"]);
});

// `npm run test:systemd` shows what each of them does to a pause.
test("the agent's unit has nothing that keeps CRIU from a sandbox: no filter of system calls, no NoNewPrivileges", () => {
  const filters =
    /^(SystemCall|Restrict|LockPersonality|MemoryDenyWriteExecute|Protect|Private(Devices|Tmp|Users)|NoNewPrivileges|DynamicUser)\w*=/m;
  expect(textOf("agent")).not.toMatch(filters);
  // Clocks of a restored sandbox, and what its processes may do.
  const denied = /^CapabilityBoundingSet=~(.*)$/m.exec(textOf("agent"))?.[1]?.split(" ") ?? ["none is denied"];
  const wanted = [...Object.keys(AGENT_CAPABILITIES), "CAP_SYS_RESOURCE", "CAP_SYS_NICE", "none is denied"];
  expect(denied.filter((name) => wanted.includes(name))).toEqual([]);
});

test.skipIf(!hasAnalyze).each(["orchestrator", "agent", "edge"])(
  "systemd finds no mistake in the unit of the %s (skipped without systemd-analyze)",
  (program) => {
    const unit = unitFor(program).replace(/^ExecStart=.*$/m, "ExecStart=/bin/true");
    const folder = mkdtempSync(join(tmpdir(), "svc-units-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, `svc-${program}.service`);
    writeFileSync(path, unit);
    const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8" });
    const about = `${stdout}${stderr}`.split("\n").filter((line) => line.includes(`svc-${program}`));
    expect(about).toEqual([]);
  },
);

// Exposure as docs/operating/start.md states it, from 0 (none) to 10.
test.skipIf(!hasAnalyze).each([
  ["orchestrator", "1.8"],
  ["agent", "9.4"],
  ["edge", "1.8"],
])("the exposure of the %s is at most %s (skipped without systemd-analyze)", (program, most) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-units-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const unit = join(folder, `svc-${program}.service`);
  writeFileSync(unit, unitFor(program));
  const said = execFileSync("systemd-analyze", ["security", "--offline=true", "--no-pager", unit], {
    encoding: "utf8",
  });
  const score = /exposure level for \S+: (\d+\.\d)/.exec(said)?.[1];
  expect(Number(score)).toBeLessThanOrEqual(Number(most));
  expect(readFileSync(join(import.meta.dirname, "../../../docs/operating/start.md"), "utf8")).toContain(most);
});
