/** Builds the parts that pause, resume, fork, expire and change sandboxes. */

import type { Log } from "../../../shared/program/log.ts";
import type { Seal } from "../../../shared/program/seal.ts";
import type { Background } from "../../background.ts";
import type { OrchestratorConfig } from "../../config.ts";
import { createNetworkUpdating, type NetworkUpdating } from "../../network/updating.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Routes } from "../../routing-table.ts";
import type { SnapshotRemover } from "../../snapshots/removal.ts";
import type { Project } from "../../store/projects.ts";
import type { Store } from "../../store/store.ts";
import { createWaking, type Waking } from "./auto-resume.ts";
import { type Capturing, createCapturing } from "./checkpoint.ts";
import type { Ending } from "./kill.ts";
import { createPausing, type Pausing } from "./pause.ts";
import { createResuming, type Resuming } from "./resume.ts";
import type { Transitions } from "./transitions.ts";

export interface SleepDeps {
  readonly config: OrchestratorConfig;
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: Routes;
  readonly transitions: Transitions;
  readonly background: Background;
  readonly snapshots: SnapshotRemover;
  readonly sealing: Seal;
  readonly ending: Pick<Ending, "end">;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
  readonly maxHours: (project: Project) => number;
  readonly maxSandboxes: (project: Project) => number;
  expiresAt(endAt: number): void;
}

export interface Sleep {
  readonly pausing: Pausing;
  readonly resuming: Resuming;
  readonly capturing: Capturing;
  readonly waking: Waking;
  readonly networks: NetworkUpdating;
}

export function createSleep(deps: SleepDeps): Sleep {
  const { config, ...parts } = deps;
  const { captureTimeoutMs, patienceMs, seed } = config;
  const resuming = createResuming({
    ...parts,
    seed,
    startTimeoutMs: config.resumeTimeoutMs,
    patienceMs,
    end: (nodeId, executionId) => deps.ending.end(nodeId, executionId),
  });
  const waking = createWaking({ ...parts, resuming, seed, limit: config.wakeLimit, timeoutMs: config.wakeTimeoutMs });
  const pausing = createPausing({ ...parts, captureTimeoutMs, patienceMs, onPaused: () => waking.changed() });
  const capturing = createCapturing({ ...parts, captureTimeoutMs, patienceMs });
  const networks = createNetworkUpdating({ ...parts, patienceMs, networkTimeoutMs: config.networkTimeoutMs });
  return { pausing, resuming, capturing, waking, networks };
}
