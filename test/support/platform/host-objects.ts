/**
 * The objects that an instance holds on the host, counted, and the invariants between them: the one check that all crash and
 * leak tests use.
 */

import { readdir, readFile, readlink } from "node:fs/promises";
import { slotsOf } from "../../../machine/evidence/objects.ts";
import { isSandbox, nodeProblems, recordProblems } from "../../../machine/invariants/invariants.ts";
import { agentPage } from "./agent-pages.ts";
import { api, asAdmin, type Platform } from "./platform.ts";
import { disksOfNode, type Program, pidOf, run, settingOf } from "./programs.ts";

/** What the agent of one node has made on the host. */
export interface NodeObjects {
  /** Containers: those of sandboxes, those of the warm pool, and those that do not run. */
  readonly sandboxes: number;
  readonly pooled: number;
  readonly dead: number;
  readonly namespaces: number;
  readonly links: number;
  /** Elements of the firewall's two sets. */
  readonly pinned: number;
  readonly open: number;
  readonly annotations: number;
  /** Processes in all containers of the instance. */
  readonly processes: number;
}

export interface HostObjects extends NodeObjects {
  /** Shims and cgroups of containers that Docker does not know. */
  readonly orphanShims: number;
  readonly orphanCgroups: number;
  /** Running sandboxes by the records of all projects, and by the node's last report. */
  readonly records: number;
  readonly reported: number;
  readonly children: Readonly<Record<Program, number>>;
  readonly descriptors: Readonly<Record<Program, number>>;
}

export interface ContainerInfo {
  readonly id: string;
  readonly name: string;
  readonly state: string;
}

/** Directories beside the disks of containers (agent/sandbox-disks). */
const OF_ALL_DISKS = new Set(["stored", "formatted", "volumes"]);
const CGROUPS = ["/sys/fs/cgroup/memory/docker", "/sys/fs/cgroup/docker", "/sys/fs/cgroup/system.slice"];

export async function countHostObjects(platform: Platform): Promise<HostObjects> {
  const agent = await pidOf(platform, "agent");
  const orchestrator = await pidOf(platform, "orchestrator");
  return {
    ...(await countNodeObjects(platform)),
    ...(await countOrphans()),
    records: await recordCount(platform),
    reported: await reportedCount(platform),
    children: { agent: await childrenOf(agent), orchestrator: await childrenOf(orchestrator) },
    descriptors: { agent: await descriptorsOf(agent), orchestrator: await descriptorsOf(orchestrator) },
  };
}

/** Counts what one node has on the host, without its platform. */
export async function countNodeObjects(platform: Platform): Promise<NodeObjects> {
  const network = settingOf(platform, "agent", "SVC_NETWORK_NAME");
  const containers = await containersOf(platform);
  return {
    sandboxes: containers.filter((one) => isSandbox(one)).length,
    pooled: containers.filter((one) => one.name.startsWith("svc-pool-") && one.state === "running").length,
    dead: containers.filter((one) => one.state !== "running").length,
    namespaces: (await namesIn("/run/netns", network)).length,
    links: (await namesIn("/sys/class/net", network)).length,
    pinned: (await setElements(network, "pinned")).length,
    open: (await setElements(network, "open")).length,
    annotations: (await list(`${platform.paths.run}/containers`)).length,
    processes: await processesIn(new Set(containers.map((one) => one.id))),
  };
}

/** Counts shims and cgroups of containers that Docker does not know, of all nodes of the machine. */
export async function countOrphans(): Promise<Pick<HostObjects, "orphanShims" | "orphanCgroups">> {
  const known = new Set((await run("docker", ["ps", "-aq", "--no-trunc"])).split("\n"));
  return { orphanShims: await orphanShims(known), orphanCgroups: await orphanCgroups(known) };
}

/** How many containers the agent is asked to keep in its warm pool, and its memory allows, by its own metrics. */
export async function wantedInPool(platform: Platform): Promise<number> {
  return (await poolSizes(platform)).wanted;
}

/** The agent's warm containers, of all builds. */
export async function poolSizes(platform: Platform): Promise<{ readonly wanted: number; readonly ready: number }> {
  const text = await agentMetrics(platform);
  const sum = (state: string) =>
    [...text.matchAll(/^svc_pool_size\{[^}]*state="(\w+)"[^}]*\} (\d+)$/gm)]
      .filter(([, of]) => of === state)
      .reduce((all, [, , size]) => all + Number(size), 0);
  return { wanted: sum("wanted"), ready: sum("ready") };
}

async function agentMetrics(platform: Platform): Promise<string> {
  // A node that has joined has no token of an orchestrator.
  const token =
    settingOf(platform, "agent", "SVC_METRICS_TOKEN", "") || settingOf(platform, "agent", "SVC_ORCHESTRATOR_TOKEN");
  return (await agentPage(platform, "/metrics", { authorization: `Bearer ${token}` })).text;
}

async function fetchedDisksOf(platform: Platform): Promise<number> {
  const [, value] = /^svc_disks_fetched (\d+)$/m.exec(await agentMetrics(platform)) ?? [];
  if (value === undefined) throw new Error("the agent does not say how many disks came from another node");
  return Number(value);
}

/** Returns one sentence for each broken invariant; empty when all is well. Tests poll it after a disturbance. */
export async function findProblems(platform: Platform): Promise<readonly string[]> {
  const containers = await containersOf(platform);
  const running = await listedSandboxes(platform, "running");
  const paused = (await listedSandboxes(platform, "paused")).map((one) => one.sandboxID);
  const unseen = (await recordCount(platform)) - running.length;
  const records = { running, paused, moving: [], held: [], unseen };
  return [
    ...recordProblems(records, containers, Date.now()).map(({ text }) => text),
    ...(await findNodeProblems(platform, containers)),
  ];
}

/** As `findProblems`, for what one node has on the host: each of its containers has its network, and nothing is left of another. */
export async function findNodeProblems(
  platform: Platform,
  containers: readonly ContainerInfo[],
): Promise<readonly string[]> {
  const network = settingOf(platform, "agent", "SVC_NETWORK_NAME");
  const pinned = (await setElements(network, "pinned")).join("\n");
  const disks = (await list(disksOfNode(platform))).map((name) => name.replace(/\.img$/, ""));
  const seen = await Promise.all(containers.map(async (one) => ({ ...one, slot: await slotOf(platform, one) })));
  const problems = nodeProblems({
    containers: seen,
    namespaces: await namesIn("/run/netns", network),
    links: await namesIn("/sys/class/net", network),
    pinned: slotsOf(pinned, network),
    annotated: await list(`${platform.paths.run}/containers`),
    disks: [...new Set(disks)].filter((id) => !OF_ALL_DISKS.has(id)),
    fetchedDisks: await fetchedDisksOf(platform),
  });
  return problems.map(({ text }) => text);
}

/** Lists every container that carries the node's label. */
export async function containersOf(platform: Platform): Promise<readonly ContainerInfo[]> {
  const label = `label=svc.node=${settingOf(platform, "agent", "SVC_NODE_ID")}`;
  const format = "{{.ID}} {{.Names}} {{.State}}";
  const text = await run("docker", ["ps", "-a", "--no-trunc", "--filter", label, "--format", format]);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [id = "", name = "", state = ""] = line.split(" ");
      return { id, name, state };
    });
}

export async function listedSandboxes(
  platform: Platform,
  state: "running" | "paused",
): Promise<readonly { sandboxID: string; endAt: string }[]> {
  const all: { sandboxID: string; endAt: string }[] = [];
  for (let token: string | null = ""; token !== null; ) {
    const reply = await api(
      platform,
      "GET",
      `/v2/sandboxes?state=${state}${token === "" ? "" : `&nextToken=${token}`}`,
    );
    all.push(...(reply.json as { sandboxID: string; endAt: string }[]));
    token = reply.headers.get("x-next-token");
  }
  return all;
}

export async function recordCount(platform: Platform): Promise<number> {
  const reply = await api(platform, "GET", "/admin/sandboxes/running-counts", asAdmin(platform));
  return Object.values(reply.json as Record<string, number>).reduce((sum, count) => sum + count, 0);
}

export async function reportedCount(platform: Platform): Promise<number> {
  const reply = await api(platform, "GET", "/nodes", asAdmin(platform));
  const nodes = reply.json as { sandboxCount: number; sandboxStartingCount: number }[];
  return nodes.reduce((sum, node) => sum + node.sandboxCount + node.sandboxStartingCount, 0);
}

async function slotOf(platform: Platform, container: ContainerInfo): Promise<string | undefined> {
  const path = `${platform.paths.run}/containers/${container.id}/netns`;
  return (await readFile(path, "utf8").catch(() => undefined))?.trim().split("/").at(-1);
}

async function namesIn(directory: string, network: string): Promise<readonly string[]> {
  return (await list(directory)).filter((name) => new RegExp(`^${network}-\\d+$`).test(name));
}

/** Lists the sandboxes' elements of a set. The agent's own probe has one for a moment, at any time. */
async function setElements(network: string, set: string): Promise<readonly string[]> {
  const text = await run("nft", ["-j", "list", "set", "inet", network, set]);
  const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: unknown[] } }[] };
  return nftables
    .flatMap((one) => one.set?.elem ?? [])
    .map((element) => JSON.stringify(element))
    .filter((element) => !element.includes(`${network}-probe`));
}

async function processesIn(ids: ReadonlySet<string>): Promise<number> {
  let count = 0;
  for (const pid of await pids()) {
    const cgroups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
    const id = /[0-9a-f]{64}/.exec(cgroups)?.[0];
    if (id !== undefined && ids.has(id)) count++;
  }
  return count;
}

async function orphanShims(known: ReadonlySet<string>): Promise<number> {
  let count = 0;
  for (const pid of await pids()) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!command.includes("containerd-shim")) continue;
    const id = /\0-id\0([0-9a-f]{64})\0/.exec(command)?.[1];
    if (id !== undefined && !known.has(id)) count++;
  }
  return count;
}

async function orphanCgroups(known: ReadonlySet<string>): Promise<number> {
  const names = (await Promise.all(CGROUPS.map(list))).flat();
  const ids = names.map((name) => /^(?:docker-)?([0-9a-f]{64})(?:\.scope)?$/.exec(name)?.[1]);
  return ids.filter((id) => id !== undefined && !known.has(id)).length;
}

export async function childrenOf(pid: number): Promise<number> {
  const tasks = await list(`/proc/${pid}/task`);
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "")),
  );
  return lists.join(" ").split(" ").filter(Boolean).length;
}

async function descriptorsOf(pid: number): Promise<number> {
  const names = await list(`/proc/${pid}/fd`);
  const targets = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => undefined)));
  return targets.filter((target) => target !== undefined).length;
}

export async function pids(): Promise<readonly string[]> {
  return (await list("/proc")).filter((name) => /^\d+$/.test(name));
}

function list(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}
