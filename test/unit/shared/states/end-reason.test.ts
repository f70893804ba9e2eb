/** The reasons of ends: each has a clause for people, and details are bounded lines. */

import { expect, test } from "vitest";
import { endOf } from "../../../../orchestrator/repairs/heartbeat.ts";
import { ExitReport } from "../../../../shared/agent-api/routes.ts";
import { cleanDetail, describeEnd, EndReason, MAX_END_DETAIL } from "../../../../shared/states/end-reason.ts";

test("every reason has a clause of its own", () => {
  const clauses = EndReason.enum.map((reason) => describeEnd({ reason }));
  expect(new Set(clauses).size).toBe(EndReason.enum.length);
  for (const clause of clauses) expect(clause).toMatch(/^(a|an|it|its) [^.]+$/);
});

test.each([
  [{ reason: "exited", exitCode: 0 }, "its first process exited with exit code 0"],
  [{ reason: "exited" }, "its first process exited"],
  [
    { reason: "out_of_memory", exitCode: 137, detail: "process 'python3' used most" },
    "it ran out of memory with exit code 137 (process 'python3' used most)",
  ],
] as const)("%j reads as a clause with code and detail", (end, clause) => {
  expect(describeEnd(end)).toBe(clause);
});

test.each([
  ["exited", "exited"],
  ["out_of_memory", "out_of_memory"],
  ["oom", "out_of_memory"],
  ["removed", "removed"],
  ["expired", "timeout"],
  ["lost", "lost"],
  ["disk_full", "disk_full"],
] as const)("an agent's %s is stored as %s", (reported, stored) => {
  expect(endOf({ reason: reported, exitCode: 3, detail: " a\nb " })).toEqual({
    reason: stored,
    exitCode: 3,
    detail: "a b",
  });
});

test("the table above has every reason that an agent may report", () => {
  expect(ExitReport.properties.reason.enum).toHaveLength(7);
  for (const reason of ExitReport.properties.reason.enum) expect(EndReason.enum).toContain(endOf({ reason }).reason);
});

test.each([
  ["", undefined],
  [" \n\u0007 ", undefined],
  ["one\r\ntwo\u001b[31m", "one two [31m"],
  ["a\u202eb", "a b"],
])("the detail %j is stored as %j", (given, stored) => {
  expect(cleanDetail(given)).toBe(stored);
});

test("a detail of any length fits the report to the orchestrator", () => {
  expect(cleanDetail("\u{1f600}".repeat(10_000))?.length).toBeLessThanOrEqual(MAX_END_DETAIL);
  expect(cleanDetail("x".repeat(10_000))).toHaveLength(MAX_END_DETAIL / 2);
});
