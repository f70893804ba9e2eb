/** Writes memory to disk with runc and CRIU, and runs the page server of a lazy restore. */

import { spawn } from "node:child_process";
import { readdir, readFile, readlink, realpath, rmdir, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import type { RunCommand } from "../../host/command.ts";
import { explainDump, memoryNotStored } from "./dump-log.ts";
import { wipeOnRestore } from "./wipe-on-fork.ts";

/** Least free space for a snapshot: CRIU writes a mebibyte at a time. */
const FULL_BYTES = 1024 * 1024;
const DUMP_LIMIT_MS = 120_000;
/** PATH in which the installed CRIU comes first; the distribution's own may not work. */
export const CRIU_PATH = "/opt/svc/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const RUNTIME_STATES = "/run/docker";
/** Where containerd, Docker's own or the machine's, keeps a directory for each task. */
const TASKS = [
  "/run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby",
  "/run/containerd/io.containerd.runtime.v2.task/moby",
];
const LISTEN_LIMIT_MS = 5_000;
/** From the signal that ends a CRIU to its end. */
const KILL_LIMIT_MS = 10_000;
/** Longer than svc-runc lets a whole restore take. */
export const END_LIMIT_MS = 35_000;
const POLL_MS = 5;
const SLOW_POLL_MS = 100;
const LOG_BYTES = 256 * 1024;

export interface PageServer {
  /** Resolves to true when the last page has been restored, to false when the server ended before that. */
  readonly done: Promise<boolean>;
  stop(): void;
}

export interface Criu {
  /**
   * Dumps a frozen container, which stays unchanged and frozen.
   * @throws {AppError} no_space, snapshot_failed with the reason
   */
  dump(containerId: string, to: { readonly images: string; readonly work: string }): Promise<void>;
  /** Memory that its program wants empty in a copy is empty when these images are restored. */
  wipeOnRestore(images: string): Promise<void>;
  /** Resolves when the page server listens in `work`. It outlives this program. */
  servePages(images: string, work: string): Promise<PageServer>;
  /** The page server in this directory that an earlier agent process left running. */
  findPageServer(work: string): Promise<PageServer | undefined>;
  /**
   * Ends a restore that Docker does not know any more, with its processes and its shim: when Docker dies the shim carries
   * on, and the next Docker refuses to start a container that has one.
   */
  endRestore(containerId: string): Promise<void>;
  /** Waits for dumps into this directory that an earlier agent process left running, and ends those that hang. */
  settled(directory: string): Promise<void>;
  /**
   * Removes the names that a dump has given to open files (see scripts/host/criu/criu-links.c) from the disk of a sandbox.
   * @param names as `SnapshotFiles.links` has them
   */
  removeLinks(from: DumpedDisk, names: Uint8Array): Promise<void>;
}

/** A container's files: by the root of its first process, or, without processes, by its writable layer. */
export interface DumpedDisk {
  readonly id: string;
  readonly pid: number;
  readonly upperDirectory: string | undefined;
}

// A full disk is detected here, because CRIU cannot write its reason on it.
async function isFull(directory: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize < FULL_BYTES;
}

export function hostCriu(run: RunCommand): Criu {
  return {
    wipeOnRestore,

    async dump(containerId, { images, work }) {
      const root = await stateDirectory(containerId);
      const where = ["--image-path", images, "--work-path", work];
      try {
        await run("runc", ["--root", root, "checkpoint", "--leave-running", ...where, containerId], {
          timeoutMs: DUMP_LIMIT_MS,
          path: CRIU_PATH,
        });
      } catch (cause) {
        await endDump(work);
        const log = await tail(join(work, "dump.log"));
        const { reason, noSpace } = explainDump(log);
        if (noSpace || String(cause).includes("no space left") || (await isFull(work)))
          throw new AppError("no_space", "the node has no space left for the snapshot", { cause });
        throw new AppError("snapshot_failed", memoryNotStored(reason), { cause, details: { log: log.slice(-2_000) } });
      }
    },

    async servePages(images, work) {
      const args = ["lazy-pages", "--images-dir", images, "--work-dir", work, "--log-file", "lazy-pages.log"];
      const child = spawn("criu", args, { detached: true, stdio: "ignore", env: { PATH: CRIU_PATH } });
      const state = { over: false };
      const done = new Promise<boolean>((resolve) => {
        const end = (code: number | null) => {
          state.over = true;
          resolve(code === 0);
        };
        child.once("error", () => end(null));
        child.once("exit", end);
      });
      child.unref();
      const deadline = performance.now() + LISTEN_LIMIT_MS;
      while (!(await readdir(work)).includes("lazy-pages.socket")) {
        if (state.over || performance.now() > deadline) {
          child.kill("SIGKILL");
          throw new AppError("internal", "CRIU's page server did not start");
        }
        await delay(POLL_MS);
      }
      return { done, stop: () => void child.kill("SIGKILL") };
    },

    async findPageServer(work) {
      const serves = (args: readonly string[]) => args.includes("lazy-pages") && args.includes(work);
      const pids = await processesOf(serves);
      const [pid] = pids;
      if (pid === undefined) return undefined;
      // The exit code of another program's child cannot be read.
      const done = gone(serves).then(() => true);
      return { done, stop: () => process.kill(pid, "SIGKILL") };
    },

    async endRestore(containerId) {
      const deadline = performance.now() + END_LIMIT_MS;
      const restores = (args: readonly string[]) =>
        args.at(-2) === containerId && args.some((one) => one.endsWith("/svc-runc"));
      for (;;) {
        const inside = await processesInside(containerId);
        for (const pid of inside) tryKill(pid);
        if (inside.length === 0 && (await processesOf(restores)).length === 0) break;
        if (performance.now() > deadline)
          throw new AppError("unavailable", `the lost restore of container ${containerId} did not end in time`);
        await delay(POLL_MS);
      }
      const shims = (args: readonly string[]) =>
        args[0]?.includes("containerd-shim") === true && args.includes(containerId);
      for (const pid of await processesOf(shims)) tryKill(pid);
      while ((await processesOf(shims)).length > 0) {
        if (performance.now() > deadline)
          throw new AppError("unavailable", `the shim of container ${containerId}'s lost restore did not end in time`);
        await delay(POLL_MS);
      }
      await removeTask(containerId);
    },

    async settled(directory) {
      const dumps = (args: readonly string[]) => args.some((one) => one.startsWith(directory));
      const limit = performance.now() + DUMP_LIMIT_MS;
      while ((await processesOf(dumps)).length > 0 && performance.now() < limit) await delay(SLOW_POLL_MS);
      for (const pid of await processesOf(dumps)) tryKill(pid);
      await endDump(join(directory, "work"));
    },

    async removeLinks({ id, pid, upperDirectory }, names) {
      const root = (await isInside(pid, id)) ? `/proc/${pid}/root` : upperDirectory;
      if (root !== undefined) await run("svc-inside", ["remove-links", root], { input: names, path: CRIU_PATH });
    },
  };
}

/**
 * Ends the CRIU that writes its log in this directory. It outlives the runc that started it, and may wait for ever: for
 * a killed first process, which itself waits for the processes that CRIU holds.
 */
async function endDump(work: string): Promise<void> {
  const log = await realpath(join(work, "dump.log")).catch(() => undefined);
  if (log === undefined) return;
  const deadline = performance.now() + KILL_LIMIT_MS;
  for (;;) {
    const found = await Promise.all(
      (await processesOf((args) => args.some((one) => one.includes("criu")))).map(async (pid) =>
        (await hasOpen(pid, log)) ? [pid] : [],
      ),
    );
    if (found.flat().length === 0 || performance.now() > deadline) return;
    for (const pid of found.flat()) tryKill(pid);
    await delay(POLL_MS);
  }
}

async function hasOpen(pid: number, path: string): Promise<boolean> {
  const directory = `/proc/${pid}/fd`;
  const open = await readdir(directory).catch(() => [] as string[]);
  const paths = await Promise.all(open.map((one) => readlink(join(directory, one)).catch(() => "")));
  return paths.includes(path);
}

/**
 * Removes the directory of a task whose shim has ended before it was complete. containerd leaves it when it dies in between,
 * and then refuses every start of that container ("file exists"). Mount points and non-empty directories stay.
 */
async function removeTask(containerId: string): Promise<void> {
  for (const tasks of TASKS) {
    const directory = join(tasks, containerId);
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(directory, entry.name);
      await (entry.isDirectory() ? rmdir(path) : unlink(path)).catch(() => undefined);
    }
    await rmdir(directory).catch(() => undefined);
  }
}

/** Docker names the directory after the runtime's kind, which differs between versions. */
async function stateDirectory(containerId: string): Promise<string> {
  for (const kind of await readdir(RUNTIME_STATES).catch(() => [] as string[])) {
    if (!kind.startsWith("runtime-")) continue;
    const root = join(RUNTIME_STATES, kind, "moby");
    if ((await readdir(root).catch(() => [] as string[])).includes(containerId)) return root;
  }
  throw new AppError("snapshot_failed", "the container does not run under runc");
}

async function tail(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.slice(-LOG_BYTES);
}

async function gone(matches: (args: readonly string[]) => boolean): Promise<void> {
  const isThere = async () => (await processesOf(matches)).length > 0;
  // The caller waits later, so a rejection would end the agent: processes that the agent cannot list count as running.
  while (await isThere().catch(() => true)) await delay(SLOW_POLL_MS);
}

async function processesInside(containerId: string): Promise<number[]> {
  const found = await Promise.all(
    (await processIds()).map(async (pid) => ((await isInside(pid, containerId)) ? [pid] : [])),
  );
  return found.flat();
}

async function isInside(pid: number, containerId: string): Promise<boolean> {
  const cgroups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  if (!cgroups.includes(containerId)) return false;
  // A dead process that its parent has not reaped stays in the list.
  return !/^State:\s+[ZX]/m.test(await readFile(`/proc/${pid}/status`, "utf8").catch(() => "State: X"));
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process ended meanwhile.
  }
}

async function processIds(): Promise<number[]> {
  return (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
}

async function processesOf(matches: (args: readonly string[]) => boolean): Promise<number[]> {
  const found = await Promise.all(
    (await processIds()).map(async (pid) => {
      const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      return pid !== process.pid && matches(text.split("\0")) ? [pid] : [];
    }),
  );
  return found.flat();
}
