/** The units of systemd: what they promise of themselves, by systemd's own tools where the machine has them. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const units = join(import.meta.dirname, "../../../scripts/systemd");
const textOf = (program: string) => readFileSync(join(units, `svc-${program}.service`), "utf8");

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
  // systemd-notify is a child of the program.
  expect(text).toMatch(/^NotifyAccess=all$/m);
});

// Exposure as docs/operating/start.md states it, from 0 (none) to 10.
test.skipIf(!hasAnalyze).each([
  ["orchestrator", "1.8"],
  ["agent", "8.3"],
  ["edge", "1.8"],
])("the exposure of the %s is at most %s (skipped without systemd-analyze)", (program, most) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-units-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const unit = join(folder, `svc-${program}.service`);
  writeFileSync(unit, textOf(program).replaceAll("@SUFFIX@", ""));
  const said = execFileSync("systemd-analyze", ["security", "--offline=true", "--no-pager", unit], {
    encoding: "utf8",
  });
  const score = /exposure level for \S+: (\d+\.\d)/.exec(said)?.[1];
  expect(Number(score)).toBeLessThanOrEqual(Number(most));
  expect(readFileSync(join(import.meta.dirname, "../../../docs/operating/start.md"), "utf8")).toContain(most);
});
