/** What the console tells of a node. */

import { expect, test } from "vitest";
import { abilitiesOf, mostTaken, nodeFacts } from "../../../console/src/platform/node-facts.ts";

const NOW = Date.UTC(2026, 0, 1, 12);
const iso = (ms: number) => new Date(NOW + ms).toISOString();
const node = {
  status: "ready" as const,
  statusChangedAt: iso(-60_000),
  lastHeardAt: iso(-4_000),
  clockSkewMs: 0,
  leaseEndsAt: iso(20_000),
  createSuccesses: 7,
  createFails: 2,
  lastErrors: [{ at: iso(-1_000), errorCode: "internal", message: "no device" }],
  buildCount: 1,
  pools: [{ buildID: "b1", ready: 1, wanted: 3 }],
  region: null,
};
const facts = (change: object) => Object.fromEntries(nodeFacts({ ...node, ...change }, NOW));

test("a node's last report, starts and pools are told", () => {
  expect(facts({})).toMatchObject({
    "Heard of it": "4 s ago",
    Starts: "7 succeeded, 2 failed",
    "Last failure": expect.stringContaining("no device") as string,
    Builds: "1 under way",
    "Warm pools": "b1: 1 of 3",
    Region: "none",
  });
});

test.each([
  [{ clockSkewMs: null }, "Clock", "unknown: an earlier agent does not tell"],
  [{ clockSkewMs: 0 }, "Clock", "as the platform's"],
  [{ clockSkewMs: -1500 }, "Clock", "1500 ms behind the platform's"],
  [{ clockSkewMs: 40 }, "Clock", "40 ms ahead of the platform's"],
  [{ buildCount: null }, "Builds", "unknown: the database does not answer"],
  [{ buildCount: undefined, lastErrors: undefined }, "Builds", "unknown: an earlier orchestrator does not tell"],
  [{ leaseEndsAt: null }, "Lease", "none"],
  [{}, "Lease", "for 20 s more"],
  [{ leaseEndsAt: iso(-5_000) }, "Lease", "over for 5 s: its sandboxes stand still"],
])("of %j the %s is told as '%s'", (change, name, expected) => {
  expect(facts(change)[name]).toBe(expected);
});

test("what a node can do is told with how it is known", () => {
  const found = {
    memorySnapshots: true,
    lazyPages: false,
    ownDisks: true,
    volumes: true,
    blobStore: false,
    peers: false,
    kernel: "6.1.0",
    criu: "",
    runc: "1.2",
    docker: "28",
    details: { memorySnapshots: "tried at the start", lazyPages: "the kernel has no userfaultfd" },
  };
  const told = abilitiesOf(found);
  expect(told).toHaveLength(10);
  expect(told).toContainEqual({ name: "memory snapshots", found: "yes", why: "tried at the start" });
  expect(told).toContainEqual({ name: "lazy pages", found: "no", why: "the kernel has no userfaultfd" });
  expect(told).toContainEqual({ name: "kernel", found: "6.1.0", why: "–" });
  expect(told).toContainEqual({ name: "criu", found: "none", why: "–" });
});

test.each([
  ["places", { sandboxCount: 9, maxSandboxes: 10 }, 0.9],
  ["memory promised", { allocatedMemoryBytes: 12 }, 1.5],
  ["memory used", { memoryUsedBytes: 6 }, 0.75],
  ["places", { memoryTotalBytes: 0 }, 0.5],
])("of a node that is short of %s this is told as most taken", (what, change, share) => {
  const load = { sandboxCount: 5, maxSandboxes: 10 };
  const metrics = { allocatedMemoryBytes: 3, memoryUsedBytes: 2, memoryTotalBytes: 8 };
  expect(mostTaken({ ...load, ...change, metrics: { ...metrics, ...change } })).toEqual({ what, share });
});
