/** What an operator wants to know of a node beside its size, in words. Pure. */

import type { NodeDetail } from "../../../shared/api/nodes/nodes.ts";
import { span, time } from "../base/format.ts";

type Facts = Pick<
  NodeDetail,
  | "status"
  | "statusChangedAt"
  | "lastHeardAt"
  | "clockSkewMs"
  | "leaseEndsAt"
  | "createSuccesses"
  | "createFails"
  | "pools"
  | "region"
> &
  // Beside this page's own orchestrator one of an earlier version may answer, which does not tell these.
  Partial<Pick<NodeDetail, "lastErrors" | "buildCount">>;

export function nodeFacts(node: Facts, now: number): readonly (readonly [name: string, value: string])[] {
  const [failure] = node.lastErrors ?? [];
  return [
    ["State", `${node.status} since ${time(node.statusChangedAt, now)}`],
    ["Heard of it", `${span(now - Date.parse(node.lastHeardAt))} ago`],
    ["Clock", clockOf(node.clockSkewMs)],
    ["Lease", leaseOf(node.leaseEndsAt, now)],
    ["Starts", `${node.createSuccesses} succeeded, ${node.createFails} failed`],
    ...(failure === undefined ? [] : [["Last failure", `${time(failure.at, now)}: ${failure.message}`] as const]),
    ["Builds", buildsOf(node.buildCount)],
    [
      "Warm pools",
      node.pools.map(({ buildID, ready, wanted }) => `${buildID}: ${ready} of ${wanted}`).join(", ") || "none",
    ],
    ["Region", node.region ?? "none"],
  ];
}

function clockOf(skewMs: number | null): string {
  if (skewMs === null) return "unknown: an earlier agent does not tell";
  if (skewMs === 0) return "as the platform's";
  return `${Math.abs(skewMs)} ms ${skewMs > 0 ? "ahead of" : "behind"} the platform's`;
}

function buildsOf(count: number | null | undefined): string {
  if (count === undefined) return "unknown: an earlier orchestrator does not tell";
  return count === null ? "unknown: the database does not answer" : `${count} under way`;
}

function leaseOf(endsAt: string | null, now: number): string {
  if (endsAt === null) return "none";
  const left = Date.parse(endsAt) - now;
  return left > 0 ? `for ${span(left)} more` : `over for ${span(-left)}: its sandboxes stand still`;
}

export interface Ability {
  readonly name: string;
  readonly found: string;
  /** How the node knows it, or why it has not got it. */
  readonly why: string;
}

/** What a node has found by trying, by the names that its agent uses. */
export function abilitiesOf({ details, ...found }: NodeDetail["capabilities"]): readonly Ability[] {
  return Object.entries(found).map(([name, value]) => ({
    name: wordsOf(name),
    found: typeof value === "boolean" ? (value ? "yes" : "no") : value || "none",
    why: details[name] ?? "–",
  }));
}

/** `memorySnapshots` as `memory snapshots`. */
function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

type Load = Pick<NodeDetail, "sandboxCount" | "maxSandboxes"> & {
  readonly metrics: Pick<NodeDetail["metrics"], "allocatedMemoryBytes" | "memoryUsedBytes" | "memoryTotalBytes">;
};

interface Taken {
  readonly what: string;
  /** More than 1 where more is promised than there is. */
  readonly share: number;
}

/** What a node has least left of. */
export function mostTaken({ sandboxCount, maxSandboxes, metrics }: Load): Taken {
  const { allocatedMemoryBytes, memoryUsedBytes, memoryTotalBytes } = metrics;
  const taken = (what: string, part: number, whole: number) => ({ what, share: whole === 0 ? 0 : part / whole });
  return [
    taken("places", sandboxCount, maxSandboxes),
    taken("memory promised", allocatedMemoryBytes, memoryTotalBytes),
    taken("memory used", memoryUsedBytes, memoryTotalBytes),
  ].reduce((most, each) => (each.share > most.share ? each : most));
}
