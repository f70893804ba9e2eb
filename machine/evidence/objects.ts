/** What the node has on the machine: containers, namespaces, links, elements of the firewall, annotations, disks. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ask } from "../base/http.ts";
import type { Machine } from "../base/this-machine.ts";
import type { ContainerSeen, ObjectsSeen } from "../invariants/invariants.ts";
import { mounts } from "./machine.ts";

/** Directories beside the disks of containers (agent/sandbox-disks). */
const OF_ALL_DISKS = new Set(["stored", "formatted", "volumes"]);

export async function listObjects(machine: Machine): Promise<ObjectsSeen> {
  const { network, places } = machine.instance;
  const disks = await namesIn(disksOf(machine));
  return {
    containers: await containersOf(machine),
    namespaces: await slotsIn("/run/netns", network),
    links: await slotsIn("/sys/class/net", network),
    pinned: await pinnedIn(machine),
    annotated: await namesIn(join(places.run, "containers")),
    disks: [...new Set(disks.map((name) => name.replace(/\.(img|new)$/, "")))].filter(
      (id) => /^[0-9a-f]{64}$/.test(id) && !OF_ALL_DISKS.has(id),
    ),
  };
}

function disksOf({ instance }: Machine): string {
  const state = instance.setting("agent", "SVC_STATE_DIR") ?? join(instance.places.state, "agent");
  return instance.setting("agent", "SVC_DISKS_DIR") ?? join(state, "disks");
}

interface Listed {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly State: string;
}

async function containersOf({ instance, places }: Machine): Promise<readonly ContainerSeen[]> {
  const node = instance.setting("agent", "SVC_NODE_ID") ?? "";
  const filters = encodeURIComponent(JSON.stringify({ label: [`svc.node=${node}`] }));
  const url = `http://docker/containers/json?all=true&filters=${filters}`;
  const { status, text } = await ask({ url, socketPath: places.dockerSocket });
  if (status !== 200) throw new Error(`Docker answered ${status}`);
  return Promise.all(
    (JSON.parse(text) as readonly Listed[]).map(async ({ Id, Names, State }) => {
      const file = join(instance.places.run, "containers", Id, "netns");
      const netns = await readFile(file, "utf8").catch(() => undefined);
      return { id: Id, name: (Names[0] ?? "").replace(/^\//, ""), state: State, slot: netns?.trim().split("/").at(-1) };
    }),
  );
}

/** Elements of the set of links whose address is pinned, without that of the agent's own probe. */
async function pinnedIn({ instance, run }: Machine): Promise<readonly string[]> {
  const { status, stdout } = await run("nft", ["-j", "list", "set", "inet", instance.network, "pinned"]);
  if (status !== 0) return [];
  return slotsOf(stdout, instance.network);
}

/** Pure. @param text of `nft -j list set` */
export function slotsOf(text: string, network: string): readonly string[] {
  return [...text.matchAll(/"([a-z0-9]+-\d+)"/g)]
    .map(([, slot = ""]) => slot)
    .filter((slot) => slot.startsWith(`${network}-`));
}

async function slotsIn(directory: string, network: string): Promise<readonly string[]> {
  return (await namesIn(directory)).filter((name) => new RegExp(`^${network}-\\d+$`).test(name));
}

function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

/** Loop devices with a deleted file below the platform's directories, and mounts of such files. */
export async function listLeftovers({ instance }: Machine): Promise<readonly string[]> {
  const { state } = instance.places;
  const found: string[] = [];
  for (const name of await namesIn("/sys/block")) {
    if (!name.startsWith("loop")) continue;
    const file = await readFile(`/sys/block/${name}/loop/backing_file`, "utf8").catch(() => "");
    if (file.startsWith(`${state}/`) && file.trim().endsWith(" (deleted)")) found.push(`/dev/${name}: ${file.trim()}`);
  }
  const gone = mounts().filter(({ place }) => place.startsWith(`${state}/`) && place.endsWith("//deleted"));
  return [...found, ...gone.map(({ place }) => place)];
}
