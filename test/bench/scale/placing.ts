/** What one placement costs among many nodes: the pure choice alone, without the orchestrator around it. */

import type { Candidate, Demand } from "../../../orchestrator/nodes/placement/candidate.ts";
import { choose } from "../../../orchestrator/nodes/placement/choose.ts";
import { type Row, row, summarise } from "../numbers.ts";

const CHOICES = 2_000;
const LIMIT_MS = 1;
const GIB = 1024 ** 3;
const POLICY = { cpuOvercommit: 25, memoryOvercommit: 2, diskOvercommit: 4 };

/** Every tenth node is full and every seventh drains, so that the choice has something to pass over. */
function candidates(count: number): Candidate[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `node-${index}`,
    status: index % 7 === 0 ? "draining" : "ready",
    labels: { region: `region-${index % 4}` },
    cpuCount: 64,
    cpuPercent: index % 100,
    memoryTotalBytes: 256 * GIB,
    allocatedCpu: index % 10 === 0 ? 64 * POLICY.cpuOvercommit : index % 64,
    allocatedMemoryBytes: (index % 200) * GIB,
    sandboxCount: index % 200,
    maxSandboxes: 1_000,
    disk: { promisedBytes: 0, usedBytes: 0, freeBytes: 2 ** 50, reserveBytes: 2 ** 40, short: false },
    pools: [{ buildId: `build-${index % 5}`, ready: index % 4 }],
  }));
}

export function placing(count: number): Row {
  const nodes = candidates(count);
  const demand: Demand = {
    cpuCount: 2,
    memoryBytes: GIB,
    diskBytes: 8 * GIB,
    labels: {},
    exclude: new Map(),
    build: { id: "build-1", nodeId: "node-1" },
  };
  const samples = Array.from({ length: CHOICES }, () => {
    const began = performance.now();
    choose(nodes, demand, POLICY, Math.random);
    return performance.now() - began;
  });
  const ours = summarise(samples);
  const budgets = [{ says: `p99 ≤ ${LIMIT_MS} ms`, value: ours.p99, limit: LIMIT_MS, better: "less" as const }];
  return row({ name: `placement among ${count} nodes`, unit: "ms", ours, budgets });
}
