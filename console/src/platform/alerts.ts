/**
 * What the nodes' reports show that the platform's alerts for Prometheus also name: for operators who have no Prometheus, or look
 * here first. Times in which an alert waits are kept where a report says since when. Pure.
 */

import type { NodeDetail } from "../../../shared/api/nodes/nodes.ts";
import { bytes, span } from "../base/format.ts";

export interface Alert {
  /** The name in docs/operating/alerts.md. */
  readonly name: string;
  readonly severity: "critical" | "warning";
  /** Undefined: of the whole platform. */
  readonly node?: string;
  readonly what: string;
}

type Reported = Pick<NodeDetail, "id" | "status" | "statusChangedAt" | "findings" | "pools"> & {
  readonly metrics: Pick<NodeDetail["metrics"], "diskFreeBytes" | "diskReserveBytes">;
};

/** A restart of an agent, or of its machine, is no alert. */
const NOT_READY_MS = 300_000;

/** Critical ones first. */
export function alertsOf(nodes: readonly Reported[], now: number): readonly Alert[] {
  const isServed = nodes.some(({ status }) => status === "ready");
  const platform: Alert[] = isServed
    ? []
    : [{ name: "SvcNoNodeReady", severity: "critical", what: "no node takes sandboxes" }];
  return [...platform, ...nodes.flatMap((node) => alertsOfNode(node, now))];
}

function alertsOfNode({ id: node, status, statusChangedAt, findings, pools, metrics }: Reported, now: number): Alert[] {
  const alerts: Alert[] = [];
  const warn = (name: string, what: string) => alerts.push({ name, severity: "warning", node, what });
  const since = now - Date.parse(statusChangedAt);
  if (status !== "ready" && since >= NOT_READY_MS) warn("SvcNodeNotReady", `it is ${status} for ${span(since)}`);
  const { diskFreeBytes: free, diskReserveBytes: reserve } = metrics;
  if (free < 2 * reserve)
    warn("SvcDiskLow", `${bytes(free)} of its disk are free, and sandboxes stand still below ${bytes(reserve)}`);
  for (const { buildID, ready, wanted } of pools)
    if (ready < wanted) warn("SvcPoolShort", `${ready} of ${wanted} warm containers of build ${buildID} are there`);
  for (const { id, problem } of findings) warn("SvcFinding", `${id}: ${problem}`);
  return alerts;
}
