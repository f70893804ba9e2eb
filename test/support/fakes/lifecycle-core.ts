/** What every change of a sandbox works with, for a test that has a store and a node of its own. */

import { createLimits } from "../../../orchestrator/access/limits.ts";
import { createRefusals } from "../../../orchestrator/access/refusals.ts";
import { createBackground } from "../../../orchestrator/base/background.ts";
import { createSeeds } from "../../../orchestrator/base/keys/seeds.ts";
import type { Core } from "../../../orchestrator/lifecycle/core.ts";
import { createDeadlines } from "../../../orchestrator/lifecycle/ending/deadlines.ts";
import { createHistory } from "../../../orchestrator/lifecycle/history.ts";
import { createTransitions } from "../../../orchestrator/lifecycle/transitions.ts";
import { createRoutingTable } from "../../../orchestrator/nodes/routing-table.ts";
import { createStartTurns } from "../../../orchestrator/nodes/start-turns.ts";
import { createLog } from "../../../shared/program/log.ts";
import { testSeal } from "../store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

const LIMITS = {
  maxProjectVolumes: 20,
  maxProjectSandboxes: 10,
  maxProjectBuilds: 10,
  maxSandboxHours: 24,
  maxSandboxCpu: 8,
  maxSandboxMemoryMb: 8_192,
  maxTemplateDiskMb: 8_192,
};

/** Time stands still. The node is asked once, and each request has a second. */
export function lifecycleCore(given: Pick<Core, "store" | "nodes"> & Partial<Core>): Core {
  const { store, nodes, now = () => 5 } = given;
  const seeds = createSeeds("seed", []);
  return {
    routes: createRoutingTable({ seeds, place: () => ({ proxyUrl: "http://127.0.0.1:1", sameHost: false }) }),
    turns: createStartTurns(nodes),
    transitions: createTransitions(),
    snapshots: { remove: () => Promise.resolve(), removeSoon: () => undefined, again: () => undefined },
    history: createHistory({ store, keepMs: 60_000, now }),
    deadlines: createDeadlines(now),
    limits: createLimits(LIMITS),
    refusals: createRefusals({ store, now, contact: "the operator" }),
    sealing: testSeal,
    seeds,
    timeouts: {
      startTimeoutMs: 1_000,
      resumeTimeoutMs: 1_000,
      autoResumeTimeoutMs: 1_000,
      placementTimeoutMs: 1_000,
      startQueueMs: 1_000,
      snapshotTimeoutMs: 1_000,
      stopTimeoutMs: 1_000,
      networkTimeoutMs: 5_000,
      patienceMs: 0,
    },
    background: createBackground(log),
    now,
    random: () => 0,
    log,
    ...given,
  };
}
