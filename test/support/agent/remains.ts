/** Removes from the host what an agent of a test has left there. */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What keeps the agents of one machine apart. */
export interface Identity {
  readonly nodeId: string;
  readonly network: string;
  readonly subnet: string;
  readonly runDir: string;
}

/** Unmounts the disks of containers that an agent which was killed has left. */
export async function unmountBelow(directory: string): Promise<void> {
  const places = (await readFile("/proc/mounts", "utf8")).split("\n").map((line) => line.split(" ")[1] ?? "");
  for (const place of places
    .filter((one) => one.startsWith(`${directory}/`))
    .sort()
    .reverse())
    await run("umount", ["--lazy", place]);
}

/** Removes everything that this agent may have left on the host. */
export async function removeAll({ nodeId, network, subnet, runDir }: Identity): Promise<void> {
  const { stdout } = await run("docker", ["ps", "-aq", "--filter", `label=svc.node=${nodeId}`]);
  const ids = stdout.split("\n").filter((id) => id !== "");
  if (ids.length > 0) await run("docker", ["rm", "-f", ...ids]);
  // Docker removes an image only after the images that stand on it.
  for (let round = 0; round < 20; round++) {
    const labelled = await run("docker", ["images", "-q", "--filter", `label=svc.node=${nodeId}`]);
    const images = new Set(labelled.stdout.split("\n").filter((id) => id !== ""));
    if (images.size === 0) break;
    for (const image of images) await run("docker", ["rmi", "-f", image]).catch(() => undefined);
  }
  // Names that keep the images below stored disks (agent/host-deps.ts).
  const below = `svc/disk-${createHash("sha256").update(nodeId).digest("hex").slice(0, 8)}`;
  const { stdout: names } = await run("docker", ["images", "--format", "{{.Repository}}:{{.Tag}}", below]);
  for (const name of names.split("\n").filter(Boolean)) await run("docker", ["rmi", name]).catch(() => undefined);
  // Not by `ip netns list`, which opens the namespaces of all agents: their sandboxes can see that.
  for (const name of await readdir("/run/netns").catch(() => []))
    if (name.startsWith(`${network}-`)) await run("ip", ["netns", "delete", name]);
  await run("nft", ["delete", "table", "inet", network]).catch(() => undefined);
  await run("ip", ["link", "delete", `${network}0`]).catch(() => undefined);
  const { stdout: routing } = await run("ip", ["rule", "show"]);
  for (const line of routing.split("\n").filter((line) => line.includes(`from ${subnet} `))) {
    await run("ip", ["rule", "delete", "pref", line.split(":")[0] ?? "", "from", subnet]);
    const table = /lookup (\d+)/.exec(line)?.[1];
    if (table !== undefined) await run("ip", ["route", "flush", "table", table]).catch(() => undefined);
  }
  // The last mount of the sandboxes' sizes ends the program that serves it.
  await unmountBelow(runDir);
  await rm(runDir, { recursive: true, force: true });
  const { stdout: rules } = await run("iptables", ["-S", "DOCKER-USER"]);
  for (const rule of rules.split("\n").filter((line) => line.includes(`${network}-+`))) {
    await run("iptables", rule.replace(/^-A/, "-D").split(" "));
  }
}
