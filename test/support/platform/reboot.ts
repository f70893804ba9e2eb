/**
 * A reboot of this machine, as far as the platform can tell. Everything that a kernel forgets is gone: all processes of the platform, of
 * the Docker daemon and of its containers die by SIGKILL, then mounts, loop devices, network, firewall, control groups and the files
 * below /run go, and the machine has another boot id. What programs had written stays, as at a reboot and not as at a power cut.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "../runner/until.ts";
import { killIfThere } from "../sandbox/frozen-container.ts";
import { loopsOf } from "./beside-pool.ts";
import { containersOf } from "./host-objects.ts";
import { checkout, type Platform } from "./platform.ts";
import { familiesOf, lineOf, listProcesses, type MachineProcess } from "./processes.ts";
import { run, settingOf } from "./programs.ts";
import { hostStep } from "./settings.ts";

const execute = promisify(execFile);

const BOOT_ID = "/proc/sys/kernel/random/boot_id";
const GROUPS = "/sys/fs/cgroup";
/** Where the Docker daemon keeps what does not survive a reboot. */
const ENGINE_RUN = "/run/docker";
const ENGINE_PID = "/run/docker.pid";
/** The log of a Docker daemon that `up` has started (scripts/lib/engine.sh). */
const ENGINE_LOG = "/var/log/svc/dockerd.log";
/** File systems that the Docker daemon mounts for containers. */
const OF_CONTAINERS = new Set(["overlay", "tmpfs", "mqueue", "nsfs"]);
/** `up` may have to build the programs again on a slow machine. */
const UP_LIMIT_MS = 900_000;
const LIMIT_MS = 60_000;

/** What must be known before everything dies, because nobody answers afterwards. */
interface Doomed {
  readonly engine: number;
  readonly engineRoot: string;
  readonly containers: ReadonlySet<string>;
}

interface Mount {
  readonly place: string;
  readonly type: string;
}

/** Why this machine cannot be rebooted without harm to others; undefined: it can. */
export async function rebootRefusal(platform: Platform): Promise<string | undefined> {
  if (platform.instance === "") return "the default instance is a user's: SVC_INSTANCE must name one for tests";
  if (existsSync("/run/systemd/system")) return "systemd starts what was killed at once, before the machine is off";
  const engine = (await readFile(ENGINE_PID, "utf8")).trim();
  if ((await readlink(`/proc/${engine}/fd/1`)) !== ENGINE_LOG) {
    return "the Docker daemon was not started by ./scripts/up, which would start one with other settings";
  }
  const own = (await containersOf(platform)).map(({ id }) => id);
  const others = lines(await run("docker", ["ps", "-q", "--no-trunc"])).filter((id) => !own.includes(id));
  if (others.length > 0) return `${others.length} containers of others run on the Docker daemon, and would die too`;
  return undefined;
}

/** Ends everything that a reboot ends. Throws when something of it is left. */
export async function powerOff(platform: Platform): Promise<void> {
  const doomed: Doomed = {
    engine: Number(await readFile(ENGINE_PID, "utf8")),
    engineRoot: (await run("docker", ["info", "--format", "{{.DockerRootDir}}"])).trim(),
    containers: new Set(lines(await run("docker", ["ps", "-aq", "--no-trunc"]))),
  };
  await killAll(platform, doomed);
  // No Docker daemon answers any more, so this step only unmounts and removes the instance's part of the network.
  await hostStep(platform, "stop-sandboxes", "0");
  for (const place of (await engineMounts(doomed)).toReversed()) {
    // One that lay in another one may be gone with it.
    await run("umount", ["--lazy", place]).catch(() => undefined);
  }
  const forgotten = [platform.paths.run, ENGINE_RUN, ENGINE_PID, "/run/docker.sock", "/run/svc/dockerd.pid"];
  await run("rm", ["-rf", "--one-file-system", "--", ...forgotten, "/run/criu.kdat"]);
  await untilNothingIsLeft(platform, doomed);
}

/**
 * Gives the machine another boot id for programs that start from now on. The result takes it back; after a run that was killed
 * `umount /proc/sys/kernel/random/boot_id` does.
 */
export async function anotherBootId(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "svc-boot-"));
  const file = join(directory, "boot_id");
  const takeBack = async () => {
    while ((await listMounts()).some(({ place }) => place === BOOT_ID)) await run("umount", [BOOT_ID]);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await writeFile(file, `${randomUUID()}\n`, { mode: 0o444 });
    await run("mount", ["--bind", file, BOOT_ID]);
  } catch (error) {
    await takeBack();
    throw error;
  }
  return takeBack;
}

export function bootId(): Promise<string> {
  return readFile(BOOT_ID, "utf8");
}

/** `./scripts/up`, which also starts the Docker daemon; changes nothing where all runs. */
export async function bringUp({ instance }: Platform): Promise<void> {
  const env = { ...process.env, SVC_INSTANCE: instance };
  await execute(`${checkout}scripts/up`, [], { timeout: UP_LIMIT_MS, maxBuffer: 64 << 20, env });
}

/** What an instance has in the kernel once, or a few times, however many containers there are. */
export async function countKernelObjects(platform: Platform): Promise<ReadonlyMap<string, number>> {
  const places = (await listMounts()).map(({ place }) => place);
  return new Map([
    ["tables of the firewall", (await tablesOf(platform)).length],
    ["rules of the routing", (await rulesOf(platform)).length],
    ["mounts in the run directory", places.filter((place) => place.startsWith(`${platform.paths.run}/`)).length],
  ]);
}

async function killAll(platform: Platform, doomed: Doomed): Promise<void> {
  const known = new Set<number>();
  const allEnded = async () => {
    const processes = await listProcesses();
    for (const { pid } of victimsOf(platform, doomed, processes)) known.add(pid);
    const left = processes.filter(({ pid }) => known.has(pid));
    // In one go: no supervisor has the time to start a program again.
    for (const { pid } of left) killIfThere(pid);
    for (const { pid } of left) await thaw(pid);
    return left.length === 0;
  };
  await until(allEnded, { what: "the end of all processes of the platform", timeoutMs: LIMIT_MS, everyMs: 100 });
}

/** The platform's programs and what they have started, the Docker daemon, its shims, and what runs in its containers. */
function victimsOf(
  { instance, paths }: Platform,
  { engine, containers }: Doomed,
  processes: readonly MachineProcess[],
): readonly MachineProcess[] {
  const logs = paths.run.replace("/run/", "/var/log/");
  // Programs that outlive the agent (svc-sizes, CRIU's page servers) and those that bound logs name these places.
  const places = [paths.run, paths.state, logs, `/opt/svc/app/current-${instance}`].map((place) => `${place}/`);
  const found = familiesOf(processes, (one) => {
    if (one.pid === engine || one.containers.some((id) => containers.has(id))) return true;
    if (one.command.includes("containerd-shim")) return [...containers].some((id) => one.command.includes(id));
    return places.some((place) => one.command.includes(place));
  });
  const own = lineOf(processes, process.pid);
  return found.filter(({ pid }) => !own.has(pid));
}

/** A frozen process takes the signal only when it is thawed. The freezer's files are those of either version of control groups. */
async function thaw(pid: number): Promise<void> {
  const groups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  for (const line of lines(groups)) {
    const [, controller = "", inner = "", outer = ""] = /^\d+:([^:]*):((.*[0-9a-f]{64}[^/]*).*)$/.exec(line) ?? [];
    for (const group of new Set([inner, outer])) {
      if (group === "") continue;
      if (controller === "freezer") await write(`${GROUPS}/freezer${group}/freezer.state`, "THAWED");
      if (controller === "") await write(`${GROUPS}${group}/cgroup.freeze`, "0");
    }
  }
}

/** A group may have gone meanwhile, or have no such file. */
async function write(file: string, text: string): Promise<void> {
  if (existsSync(file)) await writeFile(file, text).catch(() => undefined);
}

async function untilNothingIsLeft(platform: Platform, doomed: Doomed): Promise<void> {
  const seen = { left: [] as readonly string[] };
  const look = async () => {
    for (const group of await groupsOf(doomed)) await run("rmdir", [group]).catch(() => undefined);
    seen.left = await remainsOf(platform, doomed);
    return seen.left.length === 0;
  };
  try {
    await until(look, { what: "an empty machine", timeoutMs: LIMIT_MS, everyMs: 500 });
  } catch (cause) {
    throw new Error(`the machine is off, and this is left of the platform: ${seen.left.join("; ")}`, { cause });
  }
}

async function remainsOf(platform: Platform, doomed: Doomed): Promise<readonly string[]> {
  const { paths } = platform;
  const network = settingOf(platform, "agent", "SVC_NETWORK_NAME");
  const victims = victimsOf(platform, doomed, await listProcesses());
  const places = (await listMounts()).map(({ place }) => place);
  const ofInstance = new RegExp(`^${network}(?:0|-\\w+)$`);
  return [
    ...victims.map(({ pid, command }) => `process ${pid}: ${command}`),
    ...places.filter((place) => [paths.run, paths.state].some((own) => place.startsWith(`${own}/`))),
    ...(await engineMounts(doomed)),
    ...(await loopsOf(platform)),
    ...(await readdir("/run/netns").catch(() => [])).filter((name) => ofInstance.test(name)),
    ...(await readdir("/sys/class/net")).filter((name) => ofInstance.test(name)),
    ...(await tablesOf(platform)),
    ...(await rulesOf(platform)),
    ...(await groupsOf(doomed)),
    ...[paths.run, ENGINE_RUN].filter((directory) => existsSync(directory)),
  ];
}

/** The firewall's table, and that of a probe, which is there for a moment. */
async function tablesOf(platform: Platform): Promise<readonly string[]> {
  const network = settingOf(platform, "agent", "SVC_NETWORK_NAME");
  const own = new RegExp(` ${network}(?:_probe)?$`);
  return lines(await run("nft", ["list", "tables"])).filter((table) => own.test(table));
}

async function rulesOf(platform: Platform): Promise<readonly string[]> {
  const subnet = settingOf(platform, "agent", "SVC_SUBNET");
  return lines(await run("ip", ["rule", "show"])).filter((rule) => rule.includes(`from ${subnet} `));
}

/** Control groups of containers, the innermost first. */
async function groupsOf({ containers }: Doomed): Promise<readonly string[]> {
  // It fails when a directory goes while it looks, and has found the others.
  const found = await run("find", [GROUPS, "-depth", "-type", "d"]).catch(
    (error: { readonly stdout?: string }) => error.stdout ?? "",
  );
  return lines(found).filter((path) => [...containers].some((id) => path.includes(id)));
}

/** What the Docker daemon has mounted, for itself and for containers. */
async function engineMounts({ engineRoot }: Doomed): Promise<readonly string[]> {
  const isOfContainer = ({ place, type }: Mount) => place.startsWith(`${engineRoot}/`) && OF_CONTAINERS.has(type);
  const found = (await listMounts()).filter((one) => isOfContainer(one) || one.place.startsWith(`${ENGINE_RUN}/`));
  return found.map(({ place }) => place);
}

/** In the order in which they were mounted. */
async function listMounts(): Promise<readonly Mount[]> {
  return lines(await readFile("/proc/self/mountinfo", "utf8")).map((line) => {
    const [before = "", after = ""] = line.split(" - ");
    return { place: before.split(" ")[4] ?? "", type: after.split(" ")[0] ?? "" };
  });
}

function lines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}
