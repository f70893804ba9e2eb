/** What a project may do: its standing, and the limits that hold. */

import { describe, expect, test } from "vitest";
import { createLimits } from "../../../../orchestrator/access/limits.ts";
import { checkStanding } from "../../../../orchestrator/access/standing.ts";
import type { Project, ProjectStatus } from "../../../../orchestrator/store/projects/record.ts";

describe("who may call", () => {
  const refused = (status: ProjectStatus, method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", reason?: string) => {
    try {
      checkStanding({ status, statusReason: reason }, { method });
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each([
    ["active", "POST", undefined, undefined],
    ["disabled", "GET", "unpaid", undefined],
    ["disabled", "DELETE", "unpaid", undefined],
    ["disabled", "POST", "unpaid", "team is blocked: unpaid"],
    ["disabled", "PUT", "unpaid", "team is blocked: unpaid"],
    ["disabled", "PATCH", undefined, "team is blocked: no reason was given"],
    ["banned", "GET", undefined, "team is banned"],
    ["banned", "DELETE", undefined, "team is banned"],
    ["deleting", "GET", undefined, "the project is being deleted"],
  ] as const)("of a project that is %s, a %s (reason %s): %s", (status, method, reason, message) => {
    expect(refused(status, method, reason)).toBe(message);
  });
});

test("a project's own limits hold, and the platform's for the others; zero is a limit", () => {
  const limits = createLimits({
    maxProjectSandboxes: 10,
    maxProjectBuilds: 4,
    maxProjectCpu: 64,
    maxProjectVolumes: 20,
    maxSandboxHours: 24,
    maxSandboxCpu: 8,
    maxSandboxMemoryMb: 8_192,
    maxTemplateDiskMb: 1_024,
  });
  const project = { limits: { sandboxes: 3, snapshots: 0, sandboxHours: 1 } } as unknown as Project;
  expect(limits.of(project)).toMatchObject({ sandboxes: 3, snapshots: 0, totalCPU: 64, builds: 4, volumes: 20 });
  expect(limits.starts(project)).toEqual({ sandboxes: 3, totalCPU: 64 });
  expect(limits.hours(project)).toBe(1);
});
