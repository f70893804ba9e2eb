/**
 * What must hold in a fleet after any fault: records, containers, networks, counts, routes and events say the same, whichever
 * orchestrator or edge is asked; sandboxes are kept apart, and a snapshot starts.
 */

import { expect } from "vitest";
import { END_GRACE_MS, isOf, isSandbox } from "../../../machine/invariants/invariants.ts";
import { freezerState } from "../platform/frozen.ts";
import {
  type ContainerInfo,
  containersOf,
  findNodeProblems,
  listedSandboxes,
  recordCount,
  reportedCount,
} from "../platform/host-objects.ts";
import { api, asAdmin, type Platform } from "../platform/platform.ts";
import { targetOf, unary } from "../sandbox/sandbox-host.ts";
import { findEventProblems, type LifecycleEvent } from "./event-order.ts";
import { type Fleet, type FleetNode, nameOf } from "./fleet.ts";
import { egressProblems, snapshotProblems } from "./probes.ts";

interface InvariantOptions {
  /** A node that is gone as with its machine: nothing of its host counts. */
  readonly gone?: FleetNode;
  /** Longer than what was interrupted may take to be finished or undone, and than the nodes take to notice leftovers. */
  readonly limitMs?: number;
}

interface Listed {
  readonly sandboxID: string;
  readonly endAt: string;
}

interface Listing {
  readonly running: readonly Listed[];
  readonly paused: readonly Listed[];
}

/** Waits until every invariant holds, and fails with one sentence for each that does not. */
export async function expectInvariants(fleet: Fleet, options: InvariantOptions = {}): Promise<void> {
  await expect
    .poll(() => invariants(fleet, options), { timeout: options.limitMs ?? 180_000, interval: 1_000 })
    .toEqual([]);
}

/** Returns one sentence for each broken invariant. */
async function invariants(fleet: Fleet, { gone }: InvariantOptions): Promise<readonly string[]> {
  const nodes = fleet.nodes.filter((node) => node !== gone);
  const listings = await Promise.all(fleet.orchestrators.map(({ platform }) => listing(platform)));
  const [{ running, paused } = { running: [], paused: [] }] = listings;
  const containers = new Map<FleetNode, readonly ContainerInfo[]>();
  for (const node of nodes) containers.set(node, await containersOf(node.platform));
  const problems = [
    ...differences(listings),
    ...(await recordProblems(running, containers)),
    ...(await containerProblems(fleet, containers, { running, paused })),
    ...(await countProblems(fleet, { running, gone })),
    ...(await eventProblems(fleet, { running, paused })),
  ];
  for (const [node, there] of containers) {
    for (const one of await findNodeProblems(node.platform, there)) problems.push(`${node.id}: ${one}`);
  }
  // Requests go to sandboxes only when the rest holds: each takes time.
  if (problems.length > 0) return problems;
  const inside = [
    ...(await routeProblems(fleet, running)),
    ...(await egressProblems(
      fleet,
      running.map(({ sandboxID }) => sandboxID),
    )),
  ];
  // What is on a node that is gone does not start.
  return inside.length > 0 || gone !== undefined ? inside : snapshotProblems(fleet);
}

async function listing(platform: Platform): Promise<Listing> {
  return { running: await listedSandboxes(platform, "running"), paused: await listedSandboxes(platform, "paused") };
}

/** Every orchestrator lists the same. */
function differences(listings: readonly Listing[]): readonly string[] {
  const ids = (all: readonly Listed[]) =>
    all
      .map(({ sandboxID }) => sandboxID)
      .toSorted()
      .join();
  const said = listings.map(({ running, paused }) => `running ${ids(running)}; paused ${ids(paused)}`);
  return said
    .filter((one) => one !== said[0])
    .map((one) => `the second orchestrator lists ${one}, the first one ${said[0] ?? ""}`);
}

/**
 * A record that says running has one container that runs, on one node, and is not over its end. A node that was away keeps what it had
 * paused, frozen, until an operator or time removes it.
 */
async function recordProblems(
  running: readonly Listed[],
  containers: ReadonlyMap<FleetNode, readonly ContainerInfo[]>,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const { sandboxID: id, endAt } of running) {
    const on: string[] = [];
    for (const [node, there] of containers) {
      for (const one of there) if (isOf(id, one.name) && (await runs(one))) on.push(node.id);
    }
    if (on.length !== 1) {
      problems.push(`the record of ${id} says running, and it has ${on.length} containers: ${on.join(", ")}`);
    }
    if (Date.parse(endAt) < Date.now() - END_GRACE_MS) problems.push(`${id} runs although its end was ${endAt}`);
  }
  return problems;
}

async function runs({ id, state }: ContainerInfo): Promise<boolean> {
  return state === "running" && (await freezerState(id).catch(() => "gone")) === "THAWED";
}

/** A container belongs to a record, to the pool, or to what its node holds for an operator. */
async function containerProblems(
  fleet: Fleet,
  containers: ReadonlyMap<FleetNode, readonly ContainerInfo[]>,
  { running, paused }: Listing,
): Promise<readonly string[]> {
  const runs = running.map((one) => one.sandboxID);
  const rests = new Set(paused.map((one) => `svc-${one.sandboxID}`));
  const problems: string[] = [];
  for (const [node, there] of containers) {
    const held = await heldOn(fleet, node);
    for (const one of there) {
      // The container of a paused sandbox is frozen for a while and then dead; it is the sandbox's disk.
      if (rests.has(one.name) || held.has(one.name)) continue;
      if (isSandbox(one) && !runs.some((id) => isOf(id, one.name)))
        problems.push(`${node.id} runs ${one.name}, which has no record`);
      if (one.state !== "running") problems.push(`container ${one.name} on ${node.id} is ${one.state}`);
    }
  }
  return problems;
}

/** Names of the containers that a node keeps because no record names what is in them. */
async function heldOn({ orchestrators: [first] }: Fleet, node: FleetNode): Promise<ReadonlySet<string>> {
  const { platform } = first ?? node;
  const reply = await api(platform, "GET", `/nodes/${node.id}/store`, asAdmin(platform));
  if (reply.status !== 200) throw new Error(`node ${node.id} does not say what it holds: ${reply.text}`);
  const { held } = reply.json as { held: { sandboxID: string }[] };
  return new Set(held.map(({ sandboxID }) => `svc-${sandboxID}`));
}

/** What is counted is what is listed, at each orchestrator. */
async function countProblems(
  fleet: Fleet,
  { running, gone }: { running: readonly Listed[]; gone: FleetNode | undefined },
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const member of fleet.orchestrators) {
    const counted = await recordCount(member.platform);
    if (counted !== running.length) {
      problems.push(`the ${nameOf(member)} counts ${counted} running sandboxes, and lists ${running.length}`);
    }
    // What a node reported last stays while it is gone.
    const reported = gone === undefined ? await reportedCount(member.platform) : running.length;
    if (reported !== running.length) {
      problems.push(
        `the nodes of the ${nameOf(member)} report ${reported} sandboxes, and ${running.length} are listed`,
      );
    }
  }
  return problems;
}

/** Every orchestrator tells the same events, and they are a life of each sandbox. */
async function eventProblems(fleet: Fleet, { running, paused }: Listing): Promise<readonly string[]> {
  const told = await Promise.all(fleet.orchestrators.map(({ platform }) => events(platform)));
  const problems = findEventProblems(told[0] ?? [], {
    running: new Set(running.map(({ sandboxID }) => sandboxID)),
    paused: new Set(paused.map(({ sandboxID }) => sandboxID)),
  });
  const ids = told.map((all) => all.map(({ id }) => id).join());
  const differ = ids.some((one) => one !== ids[0]);
  return differ ? [...problems, "the orchestrators tell different events, or in another order"] : problems;
}

/** All lifecycle events of the project, the oldest first. */
async function events(platform: Platform): Promise<readonly LifecycleEvent[]> {
  const all: LifecycleEvent[] = [];
  const size = 100;
  for (;;) {
    const path = `/events/sandboxes?orderAsc=true&limit=${size}&offset=${all.length}`;
    const reply = await api(platform, "GET", path);
    if (reply.status !== 200) throw new Error(`${path} answered ${reply.status}: ${reply.text}`);
    const page = reply.json as LifecycleEvent[];
    all.push(...page);
    if (page.length < size) return all;
  }
}

/** Every edge leads to every running sandbox. */
async function routeProblems(fleet: Fleet, running: readonly Listed[]): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const { sandboxID } of running) {
    for (const [index, edge] of fleet.edges.entries()) {
      const platform = fleet.through(index, index);
      const said = await targetOf(platform, sandboxID)
        .then((target) => unary(platform, target, "process.Process/List", { message: {}, user: "user" }))
        .then(({ status, text }) => (status === 200 ? undefined : `${status} ${text}`), String);
      if (said !== undefined) problems.push(`the ${nameOf(edge)} does not lead to ${sandboxID}: ${said}`);
    }
  }
  return problems;
}
