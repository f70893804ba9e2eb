/** In which order the console shows the doctor's report of a node. */

import { expect, test } from "vitest";
import { readReport } from "../../../console/src/platform/doctor-report.ts";

const result = (id: string, status: "failed" | "warning" | "unknown" | "ok") => ({
  id,
  section: "kernel",
  status,
  problem: "",
  evidence: "",
  wayOut: "",
});

test("failures come before warnings, and what could not be seen is apart from both", () => {
  const checks = [result("w", "warning"), result("f", "failed"), result("u", "unknown"), result("o", "ok")];
  const { wrong, unseen, passed, summary } = readReport({ checks });
  expect([wrong, unseen, passed].map((part) => part.map(({ id }) => id))).toEqual([["f", "w"], ["u"], ["o"]]);
  expect(summary).toBe("1 failure, 1 warning, 1 check passed, 1 could not be seen");
});

test("a healthy machine has no failure in its summary, and nothing is said of what could be seen", () => {
  expect(readReport({ checks: [result("a", "ok"), result("b", "ok")] }).summary).toBe(
    "No failure, 0 warnings, 2 checks passed",
  );
});
