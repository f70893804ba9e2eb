/** The host's part in a test of hostile restores: programs, canaries under watch, and CRIU with a layer left out. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { PRELOAD_SOURCES } from "../criu/preload-sources.ts";
import { until } from "../runner/until.ts";

const run = promisify(execFile);
const HERE = import.meta.dirname;
const INSTALLED = "/opt/svc/bin";
const CRIU_HOME = "/opt/svc/criu";
const PLACES = [
  "/etc",
  "/home",
  "/media",
  "/mnt",
  "/opt",
  "/root",
  "/run",
  "/srv",
  "/tmp",
  "/usr/lib",
  "/usr/local",
  "/usr/local/bin",
  "/usr/local/lib",
  "/usr/sbin",
  "/usr/share",
  "/var/cache",
  "/var/lib",
  "/var/log",
  "/var/spool",
  "/var/tmp",
];

/** A container's disk: the directory into which the running container writes, and its root as it is mounted. */
export interface Disk {
  readonly upper: string;
  readonly merged: string;
}

/** Programs of a machine that look into every directory from time to time: their reads are not counted. */
const WALKERS = /^\S+ (?:opened|read|,|directory)+ by \d+ \S*\/(?:systemd-tmpfiles|updatedb[.\w]*)$/;

/** The presence of each of the two layers that keep a restore inside. */
export interface Layers {
  /** CRIU resolves paths in the sandbox's root. */
  readonly paths: boolean;
  /** CRIU runs where it sees nothing of the host. */
  readonly confined: boolean;
}

export interface EscapeHost {
  readonly work: string;
  readonly hostile: string;
  /** Paths on the host: one canary in each of the twenty places, and two on the other container's disk. */
  readonly canaries: readonly string[];
  /** The watcher's first line, which names its way of watching. */
  readonly watching: string;
  /** Makes a copy of the runtime whose CRIU has only these layers. */
  runtime(layers: Layers): Promise<string>;
  /** Resolves to the events in the canaries since the last call, reads included: path, events, process and program. */
  touched(): Promise<readonly string[]>;
  /**
   * The number of events so far. `since` returns the events after that many, for tests that run several sandboxes at once.
   */
  count(): number;
  since(count: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** @param other the disk of a container that must stay untouched; by default a disk that is only mounted */
export async function escapeHost(other?: Disk): Promise<EscapeHost> {
  const work = await mkdtemp(join(tmpdir(), "svc-escape-"));
  const hostile = join(work, "hostile");
  const watch = join(work, "watch");
  await run("cc", ["-static", "-O1", "-Wall", "-o", hostile, join(HERE, "hostile.c")]);
  await run("cc", ["-O1", "-Wall", "-o", watch, join(HERE, "watch.c")]);
  const disk = other ?? (await neighbour(work));
  const made = await Promise.all([...PLACES, disk.merged].map((place) => makeCanary(place)));
  const canaries = [...made, join(disk.upper, basename(made.at(-1) ?? ""))];
  const watcher = await startWatcher(watch, canaries);
  const runtimes = new Map<string, Promise<string>>();
  return {
    work,
    hostile,
    canaries,
    watching: watcher.watching,
    touched: () => watcher.touched(),
    count: () => watcher.count(),
    since: (count) => watcher.since(count),
    runtime(layers) {
      const name = `${layers.paths ? "paths" : "follows"}-${layers.confined ? "confined" : "open"}`;
      const runtime = runtimes.get(name) ?? makeRuntime(join(work, name), layers);
      runtimes.set(name, runtime);
      return runtime;
    },
    async close() {
      await watcher.stop();
      await Promise.all(made.map((one) => rm(one, { recursive: true, force: true })));
      if (other === undefined) await run("umount", [disk.merged]);
      await rm(`${CRIU_HOME}/test-${basename(work)}.so`, { force: true });
      await rm(work, { recursive: true });
    },
  };
}

/** Mounts a disk that stands for another container's. */
async function neighbour(work: string): Promise<Disk> {
  const at = (name: string) => join(work, "neighbour", name);
  for (const name of ["lower", "upper", "work", "merged"]) await mkdir(at(name), { recursive: true });
  await mountOverlay(at("lower"), at("upper"), at("work"), at("merged"));
  return { upper: at("upper"), merged: at("merged") };
}

export async function mountOverlay(lower: string, upper: string, work: string, merged: string): Promise<void> {
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  await run("mount", ["-t", "overlay", "overlay", "-o", options, merged]);
}

async function makeCanary(place: string): Promise<string> {
  const canary = await mkdtemp(join(place, "svc-canary-"));
  await mkdir(join(canary, "deep"));
  await writeFile(join(canary, "decoy"), "");
  return canary;
}

async function startWatcher(program: string, canaries: readonly string[]) {
  const directories = canaries.flatMap((one) => [one, join(one, "deep")]);
  const child: ChildProcess = spawn(program, directories, { stdio: ["pipe", "pipe", "inherit"] });
  const lines: string[] = [];
  if (child.stdout === null) throw new Error("the watcher has no output");
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  await until(() => lines.length > 0, { what: "the watch of the canaries", timeoutMs: 90_000 });
  const [watching = ""] = lines.splice(0);
  let markers = 0;
  let told = 0;
  // Events come in order: once the watcher has reported our own marker file, it has reported everything before it.
  const since = async (count: number): Promise<readonly string[]> => {
    const marker = join(canaries[0] ?? "", `marker-${++markers}`);
    await writeFile(marker, "");
    await until(() => lines.some((line) => line.startsWith(`${marker} `)), {
      what: "the marker file",
      timeoutMs: 90_000,
    });
    return lines.slice(count).filter((line) => !line.includes("/marker-") && !WALKERS.test(line));
  };
  return {
    watching,
    count: () => lines.length,
    since,
    async touched(): Promise<readonly string[]> {
      const found = await since(told);
      told = lines.length;
      return found;
    },
    async stop() {
      const ended = once(child, "exit");
      child.stdin?.end();
      await ended;
    },
  };
}

/** Copies the installed runtime and changes its wrapper of CRIU: no installed file is able to leave a layer out. */
async function makeRuntime(directory: string, { paths, confined }: Layers): Promise<string> {
  await cp(INSTALLED, directory, { recursive: true });
  const runtime = join(directory, "svc-runc");
  await replaceIn(runtime, (text) => text.replaceAll(INSTALLED, directory));
  const criu = join(directory, "criu");
  if (!paths) {
    // CRIU sees its own files in this directory when it is confined.
    const preload = `${CRIU_HOME}/test-${basename(dirname(directory))}.so`;
    const options = ["-std=c11", "-Os", "-shared", "-fPIC", "-fvisibility=hidden", "-DFOLLOW_LINKS_TO_THE_HOST"];
    await run("cc", [...options, "-o", preload, ...PRELOAD_SOURCES]);
    await replaceIn(criu, (text) => text.replaceAll(/\/opt\/svc\/criu\/preload-\w+\.so/g, preload));
  }
  if (!confined) await replaceIn(criu, (text) => text.replace(/\/opt\/svc\/criu\/confine-\w+/, ""));
  return runtime;
}

async function replaceIn(path: string, change: (text: string) => string): Promise<void> {
  const before = await readFile(path, "utf8");
  const after = change(before);
  if (after === before) throw new Error(`there is nothing to change in ${path}`);
  await writeFile(path, after);
}
