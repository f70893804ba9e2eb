/** Chooses a node for a sandbox, or says why there is none. Pure. */

import type { Candidate, Demand, PlacementPolicy } from "./candidate.ts";
import { lackOfDisk, type Misfit, misfitOf, QUESTIONS, type Question, regionOf } from "./misfit.ts";
import { score } from "./score.ts";

export type Choice =
  | { readonly is: "node"; readonly id: string }
  /** Fitting nodes exist, and none has room. `of`: what all of them lack. */
  | { readonly is: "full"; readonly of: "disk" | "other"; readonly reason: string }
  /** No node is ready now, but one is expected to report again. */
  | { readonly is: "connecting" }
  | { readonly is: "none"; readonly reason: string };

/** What a node is to a demand. */
export type Verdict =
  | { readonly node: Candidate; readonly score: number; readonly misfit?: undefined }
  | { readonly node: Candidate; readonly misfit: Misfit };

/** Number of random nodes compared: with more, all orchestrators would choose the same node. */
const SAMPLE = 3;
/** Nodes that an error names. */
const NAMED = 4;
const MIB = 1024 ** 2;

/** Chooses the best of a few random nodes, which spreads load without agreement between replicas. `random` in [0, 1). */
export function choose(
  candidates: readonly Candidate[],
  demand: Demand,
  policy: PlacementPolicy,
  random: () => number,
): Choice {
  const isClaimed = claimed(candidates, demand);
  const fitting: Candidate[] = [];
  const passed: Passed[] = [];
  for (const node of candidates) {
    const misfit = misfitOf(node, demand, policy, isClaimed);
    if (misfit === undefined) fitting.push(node);
    else passed.push({ node, ...misfit });
  }
  if (fitting.length === 0) return without(passed, demand, policy);
  const best = sample(fitting, SAMPLE, random)
    .map((node) => ({ id: node.id, score: score(node, demand, policy) }))
    .reduce((best, other) => (other.score < best.score ? other : best));
  return { is: "node", id: best.id };
}

/** Every node, the best first, then those that are passed over, each with its reason. For people. */
export function explain(candidates: readonly Candidate[], demand: Demand, policy: PlacementPolicy): Verdict[] {
  const isClaimed = claimed(candidates, demand);
  const rank = (verdict: Verdict) => (verdict.misfit === undefined ? verdict.score : Infinity);
  return candidates
    .map((node): Verdict => {
      const misfit = misfitOf(node, demand, policy, isClaimed);
      return misfit === undefined ? { node, score: score(node, demand, policy) } : { node, misfit };
    })
    .sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)));
}

/** A node that is passed over. */
interface Passed extends Misfit {
  readonly node: Candidate;
}

function claimed(candidates: readonly Candidate[], { region }: Demand): boolean {
  return region !== undefined && candidates.some(({ labels }) => regionOf(labels) === region.toLowerCase());
}

/** The error of a placement speaks of the nodes that came furthest, and names the others with their reasons. */
function without(passed: readonly Passed[], demand: Demand, policy: PlacementPolicy): Choice {
  if (passed.length === 0) return { is: "none", reason: "no node has registered" };
  const furthest = QUESTIONS.findLast((question) => passed.some(({ at }) => at === question)) ?? "home";
  const there = passed.filter(({ at }) => at === furthest);
  const choice = CHOICES[furthest](there, demand, policy);
  // Where one node alone has what it starts from, the others are of no interest.
  const asked = furthest === "home" ? [] : passed.filter(({ at }) => at !== "home");
  if (choice.is === "connecting" || choice.is === "node" || asked.length < 2) return choice;
  return { ...choice, reason: `${choice.reason} (${eachReason(asked)})` };
}

type Explain = (passed: readonly Passed[], demand: Demand, policy: PlacementPolicy) => Choice;

const none = (reason: string): Choice => ({ is: "none", reason });

const CHOICES: Readonly<Record<Question, Explain>> = {
  home: (_passed, { home }) => none(`node ${home?.nodeId ?? ""}, which alone has ${home?.has ?? ""}, is not known`),
  labels: (_passed, { labels }) =>
    none(`no node has all the labels that the project's nodes must have (${textOf(labels)})`),
  region: (_passed, { region }) => none(`no node that could run it is in region ${region ?? ""}`),
  ability: (passed, demand) => none(whyUnable(passed, demand)),
  size: (passed, demand) => none(whyTooSmall(passed, demand)),
  readiness(passed) {
    if (passed.some(({ node }) => node.status === "connecting" && node.unreached !== true)) return { is: "connecting" };
    const unreached = passed.filter(({ node }) => node.unreached === true).map(({ node }) => `'${node.id}'`);
    if (unreached.length > 0)
      return none(`the orchestrator does not reach node ${unreached.join(", ")}: GET /nodes says why`);
    if (passed.every(({ node }) => node.refuses === true))
      return none("no node serves this orchestrator's database: its operator reads why at /readyz");
    return none(`no node is ready (${[...new Set(passed.map(({ node }) => node.status))].sort().join(", ")})`);
  },
  room: whyFull,
};

function textOf(labels: Demand["labels"]): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

/** At most a few nodes by name, and all others by number and kind: an answer to a client stays short with a thousand nodes. */
export function eachReason(passed: readonly Passed[]): string {
  const named = passed.slice(0, NAMED).map(({ node, because }) => `node ${node.id} ${because}`);
  const rest = passed.slice(NAMED);
  if (rest.length === 0) return named.join("; ");
  const counts = new Map<string, number>();
  for (const { kind } of rest) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].sort(([, one], [, other]) => other - one).map(([kind, count]) => `${count} ${kind}`);
  return `${named.join("; ")}; and ${rest.length} ${rest.length === 1 ? "node" : "nodes"} more: ${kinds.join(", ")}`;
}

/** Names the reason of the first node for each thing that a node lacks, and what the caller can do without. */
function whyUnable(passed: readonly Passed[], { memory, network }: Demand): string {
  const first = (of: "noMemory" | "noNetwork") => passed.find(({ node }) => node[of] !== undefined)?.node;
  const withoutMemory = memory === true ? first("noMemory") : undefined;
  const cut = network === true ? first("noNetwork") : undefined;
  const reasons: string[] = [];
  if (withoutMemory !== undefined)
    reasons.push(
      `no node that has the stored memory can restore it (node ${withoutMemory.id}: ${withoutMemory.noMemory ?? ""}): ` +
        "start from the disk alone with memory: false, or ask the operator to mend CRIU there",
    );
  if (cut !== undefined)
    reasons.push(
      `no node gives sandboxes a network now (node ${cut.id}: ${cut.noNetwork ?? ""}): ` +
        "start it with allow_internet_access: false, or ask the operator",
    );
  return reasons.join("; ");
}

function whyTooSmall(passed: readonly Passed[], { cpuCount, memoryBytes, least }: Demand): string {
  if (least === undefined) return `no node is large enough for ${cpuCount} cores`;
  const cores = Math.max(...passed.map(({ node }) => node.cpuCount));
  const memory = Math.floor(Math.max(...passed.map(({ node }) => node.memoryTotalBytes)) / MIB);
  const asked = `${cpuCount} cores and ${Math.ceil(memoryBytes / MIB)} MiB of memory`;
  return `no node is large enough for ${asked}: nodes have up to ${cores} cores and up to ${memory} MiB, ask for less`;
}

const WAY_OUT = "delete sandboxes or snapshots, or ask the operator to make room";

function whyFull(passed: readonly Passed[], demand: Demand, policy: PlacementPolicy): Choice {
  const nodes = passed.map(({ node }) => node);
  if (nodes.every((node) => node.sandboxCount >= node.maxSandboxes)) {
    const limits = [...new Set(nodes.map((node) => node.maxSandboxes))].join(" or ");
    return { is: "full", of: "other", reason: `every node is at its limit of ${limits} sandboxes` };
  }
  if (nodes.every(({ disk }) => disk?.short === true)) {
    const reason = `the disk of every node has less room than its reserve (SVC_DISK_RESERVE_MB): ${WAY_OUT}`;
    return { is: "full", of: "disk", reason };
  }
  const lacking = nodes.filter((node) => lackOfDisk(node, demand, policy) !== undefined);
  if (lacking.length === nodes.length) {
    const reason = `no node can promise ${Math.ceil(demand.diskBytes / MIB)} MiB more of its disk (SVC_NODE_DISK_OVERCOMMIT): ${WAY_OUT}`;
    return { is: "full", of: "disk", reason };
  }
  const what = lacking.length > 0 ? "CPU, memory and disk" : "CPU and memory";
  return { is: "full", of: "other", reason: `no node has the ${what} left` };
}

function sample<T>(items: readonly T[], count: number, random: () => number): T[] {
  const rest = [...items];
  const taken: T[] = [];
  while (taken.length < count && rest.length > 0) {
    taken.push(...rest.splice(Math.floor(random() * rest.length), 1));
  }
  return taken;
}
