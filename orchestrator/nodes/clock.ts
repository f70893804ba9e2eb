/** How far a node's clock is from this orchestrator's. Pure. */

import type { Finding } from "../../shared/program/finding.ts";
import type { NodeView } from "./entry.ts";

/** A report may be on its way for some seconds. A join is refused from twice this difference on. */
const MOST_SKEW_MS = 30_000;

/** Milliseconds by which it is ahead, less the way of the report; undefined: an older agent, which does not say. */
export function clockSkewMs({ load, lastHeardAt }: Pick<NodeView, "load" | "lastHeardAt">): number | undefined {
  return load.at === undefined ? undefined : load.at - lastHeardAt;
}

export function clockFindings(node: Pick<NodeView, "id" | "load" | "lastHeardAt">): Finding[] {
  const skewMs = clockSkewMs(node) ?? 0;
  if (Math.abs(skewMs) <= MOST_SKEW_MS) return [];
  const off = `${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs < 0 ? "behind" : "ahead of"}`;
  return [
    {
      id: "node.clock",
      problem: `the clock of node '${node.id}' is ${off} the orchestrator's, so its log and its events have wrong times, and its certificate is refused before its end`,
      evidence: `its last report was sent at ${iso(node.load.at ?? 0)} by its clock and came at ${iso(node.lastHeardAt)}`,
      wayOut: "set the clock of the machine that is wrong: timedatectl set-ntp true",
    },
  ];
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
