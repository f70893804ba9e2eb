/**
 * What must hold on a node between records, containers, namespaces, links, the firewall and disks: the one function that
 * `svc doctor` and the tests of crashes and leaks use. Pure; who calls it gathers, and looks again where something may be under way.
 */

export interface ContainerSeen {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  /** The network namespace that its annotations name; undefined: there is no such annotation. */
  readonly slot: string | undefined;
}

/** What the agent of one node has made on its machine, as the machine shows it. */
export interface ObjectsSeen {
  readonly containers: readonly ContainerSeen[];
  /** Names of the node's namespaces and links, without those of the agent's own probe. */
  readonly namespaces: readonly string[];
  readonly links: readonly string[];
  /** Links that the firewall lets send with their own address alone. */
  readonly pinned: readonly string[];
  /** Ids of the containers that have annotations, and that have a disk image or a mounted disk. */
  readonly annotated: readonly string[];
  readonly disks: readonly string[];
}

export interface NodeObjects extends ObjectsSeen {
  /** How many disks of paused sandboxes came from another node and wait for their container; undefined: nobody says. */
  readonly fetchedDisks: number | undefined;
}

interface RunningRecord {
  readonly sandboxID: string;
  /** ISO 8601. */
  readonly endAt: string;
}

/** What the database says of one node. */
export interface NodeRecords {
  readonly running: readonly RunningRecord[];
  readonly paused: readonly string[];
  /** Sandboxes that are being started, paused, resumed or ended: either form of them is right. */
  readonly moving: readonly string[];
  /** Names of containers that the node holds for an operator. */
  readonly held: readonly string[];
  /** Running sandboxes whose records the caller may not see. */
  readonly unseen: number;
}

export interface Problem {
  /** `orphan`: something is left whose owner is gone. `invariant`: two parts say different things. */
  readonly kind: "invariant" | "orphan";
  readonly text: string;
}

/** A sandbox may be over its end by so much: an orchestrator ends it in the next round. */
export const END_GRACE_MS = 5_000;
const POOL = "svc-pool-";

export function isSandbox({ name, state }: Pick<ContainerSeen, "name" | "state">): boolean {
  return name.startsWith("svc-") && !name.startsWith(POOL) && state === "running";
}

/** A sandbox that another node has fetched has a longer name, because both nodes may use one Docker daemon. */
export function isOf(sandboxId: string, name: string): boolean {
  return name === `svc-${sandboxId}` || name.startsWith(`svc-${sandboxId}-`);
}

/** Records against containers. */
export function recordProblems(
  records: NodeRecords,
  containers: readonly Pick<ContainerSeen, "name" | "state">[],
  now: number,
): readonly Problem[] {
  const running = containers.filter(isSandbox);
  const problems: Problem[] = [];
  for (const { sandboxID: id, endAt } of records.running) {
    if (!running.some(({ name }) => isOf(id, name))) {
      problems.push({ kind: "invariant", text: `the record of ${id} says running, but it has no container` });
    }
    if (Date.parse(endAt) < now - END_GRACE_MS) {
      problems.push({ kind: "invariant", text: `${id} runs although its end was ${endAt}` });
    }
  }
  return [...problems, ...containerProblems(records, containers)];
}

function containerProblems(
  { running, paused, moving, held, unseen }: NodeRecords,
  containers: readonly Pick<ContainerSeen, "name" | "state">[],
): readonly Problem[] {
  // The container of a paused sandbox is frozen for a while and then dead; it stays because it is the sandbox's disk.
  const resting = ({ name }: { readonly name: string }) =>
    held.includes(name) || [...paused, ...moving].some((id) => isOf(id, name));
  const awake = containers.filter((one) => !resting(one));
  const ownerless = awake
    .filter(isSandbox)
    .filter(({ name }) => !running.some(({ sandboxID }) => isOf(sandboxID, name)));
  const problems: Problem[] = [];
  if (ownerless.length > unseen) {
    const names = ownerless.map(({ name }) => name.slice("svc-".length)).join(", ");
    problems.push({ kind: "orphan", text: `containers without a record: ${names}` });
  }
  for (const { name, state } of awake) {
    if (state !== "running") problems.push({ kind: "orphan", text: `container ${name} is ${state}` });
  }
  return problems;
}

/** Each container has its network, and nothing is left of another. */
export function nodeProblems(objects: NodeObjects): readonly Problem[] {
  const namespaces = new Set(objects.namespaces);
  const links = new Set(objects.links);
  const pinned = new Set(objects.pinned);
  const problems: Problem[] = [];
  const broken = (text: string) => void problems.push({ kind: "invariant", text });
  const left = (text: string) => void problems.push({ kind: "orphan", text });
  for (const { name, state, slot } of objects.containers) {
    if (state !== "running") continue;
    if (slot === undefined) broken(`${name} has no netns annotation`);
    else {
      if (!namespaces.has(slot)) broken(`${name} names the namespace ${slot}, which does not exist`);
      if (!links.has(slot)) broken(`${name} has no link ${slot}`);
      if (!pinned.has(slot)) broken(`${slot} of ${name} is not pinned in the firewall`);
    }
  }
  const ids = new Set(objects.containers.map(({ id }) => id));
  for (const id of objects.annotated) {
    if (!ids.has(id)) left(`annotations of a container that does not exist: ${id}`);
  }
  for (const text of diskProblems(objects, ids)) left(text);
  return problems;
}

/** Where the agent does not say how many disks wait for their container, no disk is called left over: it may be a user's. */
function diskProblems(
  { disks, fetchedDisks }: Pick<NodeObjects, "disks" | "fetchedDisks">,
  containers: ReadonlySet<string>,
): readonly string[] {
  const alone = disks.filter((id) => !containers.has(id));
  if (fetchedDisks === undefined || alone.length <= fetchedDisks) return [];
  if (fetchedDisks === 0) return alone.map((id) => `a disk of a container that does not exist: ${id}`);
  const known = `paused sandboxes that came from other nodes account for ${fetchedDisks}`;
  return [`${alone.length} disks have no container, and ${known}: ${alone.join(", ")}`];
}

/** Namespaces and links that no container of the node uses. The warm pool of networks has some: those are the agent's to say. */
export function unusedNetworks({ containers, namespaces, links }: ObjectsSeen): readonly Problem[] {
  const used = new Set(containers.map(({ slot }) => slot));
  const alone = links.filter((link) => !namespaces.includes(link) && !used.has(link));
  return alone.map((link) => ({ kind: "orphan", text: `the link ${link} has no namespace and no container` }));
}
