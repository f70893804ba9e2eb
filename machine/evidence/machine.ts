/** What the kernel and the file systems say. */

import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync, statSync } from "node:fs";
import { release, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { textOf } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import type { Disk, Evidence } from "./evidence.ts";

interface Mount {
  readonly place: string;
  readonly options: readonly string[];
}

export function mounts(): readonly Mount[] {
  return readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "))
    .map(([, place = "", , options = ""]) => ({ place: unescaped(place), options: options.split(",") }));
}

function unescaped(place: string): string {
  return place.replaceAll(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** The last mount of the longest place is in force. */
function mountOf(path: string, all: readonly Mount[]): Mount | undefined {
  return all
    .filter(({ place }) => place === "/" || path === place || path.startsWith(`${place}/`))
    .reduce<Mount | undefined>(
      (best, one) => (best === undefined || one.place.length >= best.place.length ? one : best),
      undefined,
    );
}

function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path));
}

function canWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The facts that the checks of `up` judge (known/checks.mjs). */
export async function readMachine({ instance }: Machine): Promise<object> {
  const all = mounts();
  const places = ["/etc/svc", "/opt/svc", "/var/lib/svc", "/run/svc", "/var/log/svc"].map(existing);
  return {
    checkout: "",
    programs: instance.programs,
    release: release(),
    mounts: all,
    memoryBytes: totalmem(),
    freeBytes: Number.POSITIVE_INFINITY,
    readOnly: places.filter((place) => !canWrite(place)),
    noexec: [existing("/opt/svc")].filter((place) => mountOf(place, all)?.options.includes("noexec") === true),
  };
}

export async function readKernel(): Promise<Evidence["kernel"]> {
  const forwarding = textOf("/proc/sys/net/ipv4/ip_forward")?.trim();
  const device = (path: string, module: string) => ({ path, module, is: existsSync(path) });
  return {
    release: release(),
    forwarding: forwarding === undefined ? undefined : forwarding !== "0",
    devices: [device("/dev/fuse", "fuse"), device("/dev/loop-control", "loop")],
    limits: limits(),
  };
}

/** Those that fill up; the agent's metrics have all. */
function limits(): readonly { name: string; used: number; max: number }[] {
  const numbers = (path: string) => (textOf(`/proc/sys/${path}`)?.trim().split(/\s+/) ?? []).map(Number);
  const [open = 0, , mostOpen = 0] = numbers("fs/file-nr");
  const [threads = 0] =
    /^[^/]*\/(\d+) /
      .exec(textOf("/proc/loadavg") ?? "")
      ?.slice(1)
      .map(Number) ?? [];
  const [tracked = 0] = numbers("net/netfilter/nf_conntrack_count");
  const [mostTracked = 0] = numbers("net/netfilter/nf_conntrack_max");
  const [pids = 0] = numbers("kernel/pid_max");
  return [
    { name: "open files", used: open, max: mostOpen },
    { name: "processes and threads", used: threads, max: pids },
    { name: "tracked connections", used: tracked, max: mostTracked },
  ];
}

export async function readDisks({ instance, places }: Machine): Promise<readonly Disk[]> {
  const state = instance.places.state;
  const agent = instance.setting("agent", "SVC_STATE_DIR") ?? join(state, "agent");
  const wanted: readonly (readonly [string, string])[] = [
    [agent, "node"],
    [instance.setting("agent", "SVC_DISKS_DIR") ?? join(agent, "disks"), "disks of sandboxes"],
    [dirname(instance.setting("orchestrator", "SVC_DATABASE") ?? join(state, "orchestrator/svc.db")), "database"],
    [dirname(dirname(instance.places.bin)), "programs"],
    [dirname(places.dockerSocket) === "/var/run" ? "/var/lib/docker" : state, "images and containers"],
  ];
  const all = mounts();
  const seen = new Map<string, Disk>();
  for (const [path, holds] of wanted) {
    if (!existsSync(path)) continue;
    const mount = mountOf(path, all);
    const mountPoint = mount?.place ?? "/";
    const { blocks, bfree, bavail, bsize, files, ffree } = statfsSync(path);
    const before = seen.get(mountPoint);
    seen.set(mountPoint, {
      path: before?.path ?? path,
      holds: before === undefined ? holds : `${before.holds}, ${holds}`,
      mountPoint,
      // What root may still take is not for the platform's programs to live on.
      freeBytes: bavail * bsize,
      totalBytes: (blocks - bfree + bavail) * bsize,
      freeInodes: ffree,
      totalInodes: files,
      readOnly: mount?.options.includes("ro") === true,
    });
  }
  return [...seen.values()];
}

export async function readClock({ instance, run }: Machine): Promise<Evidence["clock"]> {
  const state = instance.places.state;
  const folders = [join(state, "orchestrator"), join(state, "agent"), instance.places.config];
  const files = folders.flatMap((folder) =>
    existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [],
  );
  const times = files.flatMap((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found === undefined ? [] : [{ path, at: found.mtimeMs }];
  });
  const newest = times.toSorted((a, b) => b.at - a.at)[0];
  if (!existsSync("/run/systemd/system")) return { newest, synchronized: undefined };
  const { status, stdout } = await run("timedatectl", ["show", "--property", "NTP", "--property", "NTPSynchronized"]);
  // Without a service that keeps it, `NTP=no`: chrony or the hypervisor may.
  const keeps = status === 0 && /^NTP=yes$/m.test(stdout);
  return { newest, synchronized: keeps ? /^NTPSynchronized=yes$/m.test(stdout) : undefined };
}
