/** Metrics of changes of sandboxes' states: how long they took, how they ended, and what their parts took. */

import { Counter, Histogram, type Registry } from "prom-client";

const CHANGES = ["pause", "resume", "fork", "rewind"] as const;
type Change = (typeof CHANGES)[number];

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const PHASE_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30];
const HELP: Readonly<Record<Change, string>> = {
  pause: "Time from the record of a pause to the paused sandbox, or to the failure",
  resume: "Time from the record of a resume to the running sandbox, or to the failure",
  fork: "Time from the request of a fork to the last of its copies, or to the failure",
  rewind: "Time from the record of a rewind to the sandbox that runs from the snapshot, or to the failure",
};
/** A node names the parts of its work: another name becomes no label, so that no node makes series without end. */
const NODE_PARTS = ["wait", "boot", "create", "run", "restore", "ready", "init", "network", "command"];
const CHECKPOINT_PARTS = [
  "admit",
  "pages",
  "ahead",
  "envd",
  "freeze",
  "frozen",
  "paths",
  "dump",
  "disk",
  "images",
  "finish",
  "connections",
];
const PHASES: ReadonlySet<string> = new Set([
  "read",
  "place",
  "store",
  "queue",
  "image",
  "node",
  "checkpoint",
  ...NODE_PARTS.map((part) => `node.${part}`),
  ...CHECKPOINT_PARTS.map((part) => `checkpoint.${part}`),
]);

export interface StateChangeMetrics {
  /** @param outcome `result`: ok, or the error code */
  changed(change: Change, outcome: { readonly result: string; readonly seconds: number }): void;
  /** A snapshot that is no pause could not be taken. */
  snapshotFailed(reason: string): void;
  /** @param parts milliseconds by name, as in `Server-Timing` */
  phases(op: "create" | "fork" | "pause" | "resume", parts: Iterable<readonly [string, number]>): void;
}

export function stateChangeMetrics(registers: Registry[]): StateChangeMetrics {
  const durations = Object.fromEntries(
    CHANGES.map((change) => {
      const name = `svc_sandbox_${change}_duration_seconds`;
      return [change, new Histogram({ name, help: HELP[change], labelNames: ["result"], buckets: SECONDS, registers })];
    }),
  ) as Readonly<Record<Change, Histogram<"result">>>;
  const failures = new Counter({
    name: "svc_snapshot_failures_total",
    help: "Pauses, snapshots and checkpoints of forks that failed, by error code",
    labelNames: ["reason"],
    registers,
  });
  const phases = new Histogram({
    name: "svc_sandbox_phase_duration_seconds",
    help: "Time of the parts of creates, forks, pauses and resumes that succeeded",
    labelNames: ["op", "phase"],
    buckets: PHASE_SECONDS,
    registers,
  });
  return {
    changed(change, { result, seconds }) {
      durations[change].observe({ result }, Math.max(0, seconds));
      if (change === "pause" && result !== "ok") failures.inc({ reason: result });
    },
    snapshotFailed: (reason) => failures.inc({ reason }),
    phases(op, parts) {
      for (const [phase, ms] of parts) {
        if (PHASES.has(phase) && Number.isFinite(ms) && ms >= 0) phases.observe({ op, phase }, ms / 1000);
      }
    },
  };
}
