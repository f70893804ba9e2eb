/** Which alerts the console reads from the nodes' reports. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { alertsOf } from "../../../console/src/platform/alerts.ts";

const NOW = Date.UTC(2026, 0, 1, 12);
const GIB = 2 ** 30;
const node = {
  id: "n1",
  status: "ready" as const,
  statusChangedAt: new Date(NOW - 3_600_000).toISOString(),
  findings: [],
  pools: [{ buildID: "b1", ready: 2, wanted: 2 }],
  metrics: { diskFreeBytes: 100 * GIB, diskReserveBytes: 10 * GIB },
};
const finding = { id: "network.forward", problem: "packets are dropped", evidence: "", wayOut: "" };
const minuteAgo = new Date(NOW - 60_000).toISOString();

test.each<[string, readonly object[], readonly object[]]>([
  ["nodes that are well", [{}], []],
  ["no node", [], [{ name: "SvcNoNodeReady", severity: "critical" }]],
  [
    "a node that is silent for an hour, beside one that is well",
    [{ status: "unhealthy" }, { id: "n2" }],
    [{ name: "SvcNodeNotReady", severity: "warning", node: "n1", what: "it is unhealthy for 1 h 0 m" }],
  ],
  [
    "a node that is silent for a minute, beside one that is well",
    [{ status: "unhealthy", statusChangedAt: minuteAgo }, { id: "n2" }],
    [],
  ],
  [
    "one node that is silent for a minute",
    [{ status: "unhealthy", statusChangedAt: minuteAgo }],
    [{ name: "SvcNoNodeReady" }],
  ],
  [
    "a disk that is nearly full",
    [{ metrics: { diskFreeBytes: 19 * GIB, diskReserveBytes: 10 * GIB } }],
    [{ name: "SvcDiskLow", what: "19 GiB of its disk are free, and sandboxes stand still below 10 GiB" }],
  ],
  ["a pool that is short", [{ pools: [{ buildID: "b1", ready: 1, wanted: 2 }] }], [{ name: "SvcPoolShort" }]],
  ["a finding", [{ findings: [finding] }], [{ name: "SvcFinding", what: "network.forward: packets are dropped" }]],
])("of %s the alerts are told", (_name, changes, expected) => {
  const alerts = alertsOf(
    changes.map((change) => ({ ...node, ...change })),
    NOW,
  );
  expect(alerts).toHaveLength(expected.length);
  expect(alerts).toMatchObject(expected);
});

test("each alert has the name under which the documents explain it", () => {
  const path = join(import.meta.dirname, "../../../docs/operating/alerts.md");
  expect(existsSync(path)).toBe(true);
  const documented = readFileSync(path, "utf8");
  const all = [
    ...alertsOf([], NOW),
    ...alertsOf(
      [
        {
          ...node,
          status: "draining",
          findings: [finding],
          pools: [{ buildID: "b1", ready: 0, wanted: 1 }],
          metrics: { diskFreeBytes: 0, diskReserveBytes: GIB },
        },
      ],
      NOW,
    ),
  ];
  expect(new Set(all.map(({ name }) => name)).size).toBe(5);
  for (const { name } of all) expect(documented).toContain(`## ${name}\n`);
});
