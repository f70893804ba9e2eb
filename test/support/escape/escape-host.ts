/** What a test of hostile restores needs on the host: programs, canaries under watch, and CRIU with a layer left out. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { until } from "../until.ts";

const run = promisify(execFile);
const HERE = import.meta.dirname;
const SCRIPTS = join(HERE, "../../../scripts/host/criu");
const INSTALLED = "/opt/svc/bin";
const CRIU_HOME = "/opt/svc/criu";
const PRELOAD_SOURCES = ["criu-preload.c", "criu-walk.c", "criu-paths.c", "criu-mounts.c"];
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
  "/usr/share",
  "/var/cache",
  "/var/lib",
  "/var/log",
  "/var/spool",
  "/var/tmp",
];

/** Which of the two things that keep a restore inside are there. */
export interface Layers {
  /** CRIU resolves paths in the sandbox's root. */
  readonly paths: boolean;
  /** CRIU runs where it sees nothing of the host. */
  readonly confined: boolean;
}

export interface EscapeHost {
  readonly work: string;
  readonly hostile: string;
  readonly canaries: readonly string[];
  /** A copy of the runtime whose CRIU has these layers only. */
  runtime(layers: Layers): Promise<string>;
  /** What happened in the canaries since the last call. */
  touched(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function escapeHost(): Promise<EscapeHost> {
  const work = await mkdtemp(join(tmpdir(), "svc-escape-"));
  const hostile = join(work, "hostile");
  const watch = join(work, "watch");
  await run("cc", ["-static", "-O1", "-Wall", "-o", hostile, join(HERE, "hostile.c")]);
  await run("cc", ["-O1", "-Wall", "-o", watch, join(HERE, "watch.c")]);
  const upper = await neighbour(work);
  const canaries = await Promise.all([...PLACES, upper].map((place) => makeCanary(place)));
  const watcher = await startWatcher(watch, canaries);
  const runtimes = new Map<string, Promise<string>>();
  return {
    work,
    hostile,
    canaries,
    touched: () => watcher.touched(),
    runtime(layers) {
      const name = `${layers.paths ? "paths" : "follows"}-${layers.confined ? "confined" : "open"}`;
      const made = runtimes.get(name) ?? makeRuntime(join(work, name), layers);
      runtimes.set(name, made);
      return made;
    },
    async close() {
      await watcher.stop();
      await Promise.all(canaries.map((one) => rm(one, { recursive: true, force: true })));
      await run("umount", [join(work, "neighbour/merged")]);
      await rm(`${CRIU_HOME}/test-${basename(work)}.so`, { force: true });
      await rm(work, { recursive: true });
    },
  };
}

/** The disk of another container. */
async function neighbour(work: string): Promise<string> {
  const at = (name: string) => join(work, "neighbour", name);
  for (const name of ["lower", "upper", "work", "merged"]) await mkdir(at(name), { recursive: true });
  await mountOverlay(at("lower"), at("upper"), at("work"), at("merged"));
  return at("upper");
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
  await until(() => lines.includes("watching"), { what: "the watch of the canaries", timeoutMs: 20_000 });
  lines.length = 0;
  let marks = 0;
  return {
    // Events come in their order: when a mark of our own is seen, so is all that happened before it.
    async touched(): Promise<readonly string[]> {
      const mark = join(canaries[0] ?? "", `mark-${++marks}`);
      await writeFile(mark, "");
      await until(() => lines.some((line) => line.startsWith(`${mark} `)), { what: "the mark", timeoutMs: 20_000 });
      return lines.splice(0).filter((line) => !line.includes("/mark-"));
    },
    async stop() {
      const ended = once(child, "exit");
      child.stdin?.end();
      await ended;
    },
  };
}

/** The installed runtime, with its wrapper of CRIU changed: what leaves a layer out is in no installed file. */
async function makeRuntime(directory: string, { paths, confined }: Layers): Promise<string> {
  await cp(INSTALLED, directory, { recursive: true });
  const runtime = join(directory, "svc-runc");
  await replaceIn(runtime, (text) => text.replaceAll(INSTALLED, directory));
  const criu = join(directory, "criu");
  if (!paths) {
    // Where CRIU's own files are, which it sees in its confinement.
    const preload = `${CRIU_HOME}/test-${basename(dirname(directory))}.so`;
    const options = ["-std=c11", "-Os", "-shared", "-fPIC", "-fvisibility=hidden", "-DFOLLOW_LINKS_TO_THE_HOST"];
    await run("cc", [...options, "-o", preload, ...PRELOAD_SOURCES.map((name) => join(SCRIPTS, name))]);
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
