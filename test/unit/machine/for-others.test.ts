/** The doctor's report as it leaves the machine for the console: without secrets, bounded, and in the form of the API. */

import { expect, test } from "vitest";
import { forOthers } from "../../../machine/bundle/for-others.ts";
import { redactor } from "../../../machine/bundle/redact.ts";
import { ALL_CHECKS } from "../../../machine/checks/all.ts";
import type { Result } from "../../../machine/checks/check.ts";
import { judge } from "../../../machine/checks/judge.ts";
import { check } from "../../../shared/http/validate.ts";
import { MachineReport, REPORT_RESULTS, REPORT_TEXT } from "../../../shared/program/finding.ts";
import { FAULTS } from "../../support/machine/faults.ts";
import { healthy } from "../../support/machine/healthy.ts";

const report = (checks: readonly Result[]) => ({ ok: false, at: "2026-11-29T17:00:00.000Z", instance: "", checks });
const reports = check(MachineReport, "report");
const found: Result = {
  id: "ports.taken",
  section: "ports",
  status: "failed",
  problem: "another program listens on a port of the platform",
  evidence: "3000 (SVC_API_PORT): nginx, process 7",
  fix: "stop that program",
};

test("every check of every planted fault has the form of the API, and no word of it is taken for a secret", () => {
  for (const [, , change] of FAULTS) {
    const evidence = healthy();
    const checks = judge(ALL_CHECKS, { ...evidence, ...change(evidence) });
    const shown = forOthers(report(checks), redactor([]));
    expect(reports.passes(shown)).toBe(true);
    expect(shown.checks.map(({ wayOut }) => wayOut)).toEqual(checks.map(({ fix }) => fix));
    expect(shown.checks.map(({ problem }) => problem)).toEqual(checks.map(({ problem }) => problem));
    expect(shown.checks.map((each) => each.evidence)).toEqual(checks.map((each) => each.evidence));
  }
});

test("a value that the machine keeps, and what looks like a key, leave it in no field", () => {
  const evidence = "orchestrator: kept-value-of-the-machine and DATABASE_URL=postgresql://svc:hunter2@db/svc";
  const checks = [{ ...found, evidence, fix: "ask svc_0123456789012345678901234567890123456789" }];
  const text = JSON.stringify(forOthers(report(checks), redactor(["kept-value-of-the-machine"])));
  expect(text).not.toMatch(/kept-value|hunter2|svc_0123/);
  expect(text).toContain("[redacted]");
});

test("the fix that the doctor itself could make is left out", () => {
  const mends = { does: "module", name: "loop" } as const;
  expect(forOthers(report([{ ...found, mends }]), redactor([])).checks[0]).not.toHaveProperty("mends");
});

test("long texts and very many results are cut to what the API takes, the worst results first", () => {
  const checks = Array.from({ length: 2 * REPORT_RESULTS }, (_none, index) => ({
    ...found,
    id: `n${index}`,
    evidence: "x ".repeat(2 * REPORT_TEXT),
  }));
  const shown = forOthers(report(checks), redactor([]));
  expect(reports.passes(shown)).toBe(true);
  expect([shown.checks.length, shown.checks[0]?.id]).toEqual([REPORT_RESULTS, "n0"]);
  expect(shown.checks[0]?.evidence).toHaveLength(REPORT_TEXT - 1);
});

test("a secret is looked for before the text is cut, so that no half of one is left", () => {
  const secret = "kept value of the machine";
  const evidence = `${"x ".repeat(REPORT_TEXT / 2 - 8)}${secret} and more`;
  const [shown] = forOthers(report([{ ...found, evidence }]), redactor([secret])).checks;
  expect(shown?.evidence).toMatch(/x \[redacted\][^]*…$/);
  expect(shown?.evidence).not.toContain("kept");
  const [word] = forOthers(report([{ ...found, evidence: "x".repeat(2 * REPORT_TEXT) }]), redactor([])).checks;
  expect(word?.evidence).toBe("…");
});
