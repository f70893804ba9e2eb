/** The size of a new sandbox: the template's unless the caller names one, within the project's limits. */

import { expect, test } from "vitest";
import { readResources } from "../../../../orchestrator/sandboxes/resources.ts";

const template = { cpuCount: 2, memoryMB: 1_024, diskSizeMB: 10_240 };
const limits = { sandboxCPU: 8, sandboxMemoryMB: 4_096, contact: "ops@example.com" };
const own = { cpuCount: 2, memoryMB: 1_024, diskSizeMB: 10_240 };

test.each([
  ["nothing", {}, own, undefined],
  ["the template's size", { cpuCount: 2, memoryMB: 1_024 }, own, undefined],
  ["less of both", { cpuCount: 1, memoryMB: 128 }, { ...own, cpuCount: 1, memoryMB: 128 }, undefined],
  ["more cores", { cpuCount: 4 }, { ...own, cpuCount: 4 }, { cpuCount: 4, memoryMB: 0 }],
  ["more memory", { memoryMB: 2_048 }, { ...own, memoryMB: 2_048 }, { cpuCount: 0, memoryMB: 2_048 }],
  [
    "more cores and less memory",
    { cpuCount: 8, memoryMB: 512 },
    { ...own, cpuCount: 8, memoryMB: 512 },
    { cpuCount: 8, memoryMB: 0 },
  ],
  [
    "the limits",
    { cpuCount: 8, memoryMB: 4_096 },
    { ...own, cpuCount: 8, memoryMB: 4_096 },
    { cpuCount: 8, memoryMB: 4_096 },
  ],
])("a caller who asks for %s: what the sandbox gets, and what its node must have", (_what, ask, resources, least) => {
  expect(readResources(ask, template, limits)).toEqual({ resources, least });
});

test.each([
  [
    { cpuCount: 9 },
    /'cpuCount': 9 CPU cores is more .* ask for at most 8, or ask ops@example.com .*\(SVC_MAX_SANDBOX_CPU\)/,
  ],
  [{ memoryMB: 4_097 }, /'memoryMB': 4097 MiB is more .* ask for at most 4096 MiB, .*\(SVC_MAX_SANDBOX_MEMORY_MB\)/],
])("more than the project may have, %j, is forbidden with the limit and the way out", (ask, message) => {
  expect(() => readResources(ask, template, limits)).toThrow(message);
  expect(() => readResources(ask, template, limits)).toThrow(expect.objectContaining({ code: "forbidden" }));
});

test("a template that is larger than the limits keeps its size, and a caller may ask for as much as it has", () => {
  const large = { cpuCount: 16, memoryMB: 8_192, diskSizeMB: 0 };
  expect(readResources({}, large, limits)).toEqual({ resources: large, least: undefined });
  expect(readResources({ cpuCount: 12, memoryMB: 8_000 }, large, limits).resources).toEqual({
    cpuCount: 12,
    memoryMB: 8_000,
    diskSizeMB: 0,
  });
  expect(() => readResources({ cpuCount: 17 }, large, limits)).toThrow("at most 8");
});
