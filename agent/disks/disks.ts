/**
 * A disk of its own for every container: an ext4 image in a sparse file, mounted through a loop device. Its size is what
 * a program inside sees and gets. Stored disks are copies of such images, from which new containers get theirs.
 */

import { existsSync, statfsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { RunCommand } from "../host/command.ts";
import { formatted } from "./formatted.ts";

const IMAGE = ".img";
const UNFINISHED = ".new";
/** More copies at a time would only slow each other, and hold their sandboxes frozen for longer. */
const COPIES_AT_ONCE = 2;
/** A copy of a full disk takes as long as its node's disk needs to read and write it. */
const COPY_LIMIT_MS = 600_000;
/** While a sandbox stands still. */
const FINISH_LIMIT_MS = 120_000;
const PROBE_MB = 64;
/** `nodev` and `nosuid` hold for the host, which must take neither from a sandbox's files; overlayfs does not pass them on. */
const MOUNT_OPTIONS = "loop,noatime,discard,nodev,nosuid,errors=remount-ro";

interface Disk {
  readonly containerId: string;
  /** Docker's directory of the container's writable layer. */
  readonly layer: string;
  readonly sizeMb: number;
  /** The stored disk that it begins as; undefined: it begins empty. */
  readonly from: string | undefined;
}

export interface DiskUse {
  readonly usedBytes: number;
  readonly usedInodes: number;
}

interface StoredDisk {
  readonly id: string;
  /** Unix milliseconds. */
  readonly changedAt: number;
}

/** What was done to disks since the agent began. */
export type DiskWork = Readonly<
  Record<"make" | "ahead" | "frozen", { readonly count: number; readonly seconds: number }>
>;

export interface Disks {
  /** Directory of all images. */
  readonly root: string;
  /** Tries once whether this machine can make and mount such disks; the reason if it cannot. */
  unusable(): Promise<string | undefined>;
  has(containerId: string): boolean;
  /** The host's directory of the container's layer on its disk. */
  layer(containerId: string): string;
  /** Makes the disk of a container that has never run, and puts its layer on it. */
  make(disk: Disk): Promise<void>;
  /** Mounts the disk, as after a reboot. Nothing to do when it is mounted, or gone. @throws {AppError} snapshot_corrupt */
  mount(containerId: string): Promise<void>;
  /** Unmounts and deletes the disk. An unknown container counts as success. */
  remove(containerId: string): Promise<void>;
  use(containerId: string): DiskUse | undefined;
  /** Before the sandbox is frozen: copies most of its disk, so that little is left for `store`. */
  copyAhead(containerId: string, id: string): Promise<void>;
  /** Copies the disk of a frozen sandbox. The copy has no name that counts before `keep`. */
  store(containerId: string, id: string): Promise<void>;
  /** Resolves when the copy is durable. */
  keep(id: string): Promise<void>;
  hasStored(id: string): boolean;
  /** Whether there is a copy that `keep` has not made durable yet. */
  hasDraft(id: string): boolean;
  removeStored(id: string): Promise<void>;
  list(): Promise<{ readonly containerIds: readonly string[]; readonly stored: readonly StoredDisk[] }>;
  work(): DiskWork;
  /** Thaws the file system of a disk whose copy was cut. */
  thaw(containerId: string): Promise<void>;
}

/** @param copier path of `svc-disk-copy` */
export function hostDisks(root: string, run: RunCommand, copier: () => Promise<string>): Disks {
  const storedRoot = join(root, "stored");
  const mutex = createKeyedMutex();
  const copies = createSemaphore(COPIES_AT_ONCE);
  const empty = formatted(join(root, "formatted"), run);
  const tried = { reason: undefined as Promise<string | undefined> | undefined };

  const image = (containerId: string) => join(root, `${containerId}${IMAGE}`);
  const mountPoint = (containerId: string) => join(root, containerId);
  const layer = (containerId: string) => join(mountPoint(containerId), "layer");
  const kept = (id: string) => join(storedRoot, `${id}${IMAGE}`);
  const draft = (id: string) => join(storedRoot, `${id}${UNFINISHED}`);

  const isMounted = async (place: string) =>
    (await readFile("/proc/self/mounts", "utf8")).split("\n").some((line) => line.split(" ")[1] === place);

  const attach = async (file: string, place: string) => {
    if (await isMounted(place)) return;
    await mkdir(place, { recursive: true, mode: 0o700 });
    try {
      // The kernel frees the loop device with the mount, and also if this command is killed before it.
      await run("mount", ["-t", "ext4", "-o", MOUNT_OPTIONS, file, place]);
    } catch (cause) {
      throw new AppError("snapshot_corrupt", "the sandbox's disk cannot be mounted: its image is damaged", { cause });
    }
  };

  const detach = async (place: string) => {
    if (await isMounted(place)) await run("umount", [place], { timeoutMs: FINISH_LIMIT_MS });
    await rmdir(place).catch(unlessMissing);
  };

  const clone = async (from: string, to: string) =>
    run("cp", ["--reflink=auto", "--sparse=always", "--", from, to], { timeoutMs: COPY_LIMIT_MS });

  const done = {
    make: { count: 0, seconds: 0 },
    ahead: { count: 0, seconds: 0 },
    frozen: { count: 0, seconds: 0 },
  };
  const counted = async <T>(what: keyof DiskWork, work: () => Promise<T>): Promise<T> => {
    const begun = performance.now();
    try {
      return await work();
    } finally {
      done[what].count++;
      done[what].seconds += (performance.now() - begun) / 1_000;
    }
  };

  const thaw = async (containerId: string) => {
    // It fails where nothing is frozen.
    if (existsSync(image(containerId)))
      await run("fsfreeze", ["--unfreeze", mountPoint(containerId)]).catch(() => undefined);
  };

  const copied = async (how: "ahead" | "finish", containerId: string, id: string, timeoutMs: number) => {
    const args = [how, image(containerId), draft(id), mountPoint(containerId)];
    await mkdir(storedRoot, { recursive: true, mode: 0o700 });
    try {
      await run(await copier(), args, { timeoutMs });
    } catch (cause) {
      // A copier that was killed has left the disk frozen.
      if (how === "finish") await thaw(containerId);
      await rm(draft(id), { force: true });
      if (String(cause).includes("No space left"))
        throw new AppError("no_space", "the node has no space left for a copy of the sandbox's disk", { cause });
      throw new AppError("snapshot_failed", "the sandbox's disk could not be copied; it goes on running", { cause });
    }
  };

  const remove = (containerId: string) =>
    mutex(containerId, async () => {
      await detach(mountPoint(containerId));
      await rm(image(containerId), { force: true });
    });

  return {
    root,

    unusable() {
      tried.reason ??= (async () => {
        const name = "probe";
        try {
          await mkdir(root, { recursive: true, mode: 0o700 });
          await clone(await empty(PROBE_MB), image(name));
          await attach(image(name), mountPoint(name));
          return undefined;
        } catch (error) {
          return error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
        } finally {
          await remove(name).catch(() => undefined);
        }
      })();
      return tried.reason;
    },

    has: (containerId) => existsSync(image(containerId)),
    layer,

    make: ({ containerId, layer: ofDocker, sizeMb, from }) =>
      counted("make", () =>
        mutex(containerId, async () => {
          const release = await copies.take(AbortSignal.timeout(COPY_LIMIT_MS));
          try {
            await clone(from === undefined ? await empty(sizeMb) : kept(from), image(containerId));
          } finally {
            release();
          }
          await attach(image(containerId), mountPoint(containerId));
          const own = layer(containerId);
          // The copy of a stored disk has the layer of another container, of which Docker's own files are replaced.
          await mkdir(own, { recursive: true, mode: 0o710 });
          for (const name of ["work", "merged"]) await rm(join(own, name), { recursive: true, force: true });
          const names = (await readdir(ofDocker)).filter((name) => from === undefined || name !== "diff");
          await run("cp", ["--archive", "--", ...names.map((name) => join(ofDocker, name)), own]);
          await rm(ofDocker, { recursive: true });
          await symlink(own, ofDocker);
        }),
      ),

    async mount(containerId) {
      if (existsSync(layer(containerId))) return;
      await mutex(containerId, async () => {
        // A removal may have been first.
        if (existsSync(image(containerId))) await attach(image(containerId), mountPoint(containerId));
      });
    },
    remove,

    use(containerId) {
      try {
        const { blocks, bfree, bsize, files, ffree } = statfsSync(mountPoint(containerId));
        return { usedBytes: (blocks - bfree) * bsize, usedInodes: files - ffree };
      } catch {
        // The container has just been removed.
        return undefined;
      }
    },

    async copyAhead(containerId, id) {
      const release = await copies.take(AbortSignal.timeout(COPY_LIMIT_MS));
      try {
        await counted("ahead", () => copied("ahead", containerId, id, COPY_LIMIT_MS));
      } finally {
        release();
      }
    },
    store: (containerId, id) => counted("frozen", () => copied("finish", containerId, id, FINISH_LIMIT_MS)),

    async keep(id) {
      const file = await open(draft(id), "r");
      try {
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft(id), kept(id));
      const directory = await open(storedRoot, "r");
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    },

    hasStored: (id) => existsSync(kept(id)),
    hasDraft: (id) => existsSync(draft(id)),

    async removeStored(id) {
      await rm(draft(id), { force: true });
      await rm(kept(id), { force: true });
    },

    async list() {
      const [containers, stored] = await Promise.all([namesIn(root), namesIn(storedRoot)]);
      const ids = stored.map((name) => name.replace(/\.(img|new)$/, ""));
      const dates = await Promise.all(
        stored.map(async (name) => (await stat(join(storedRoot, name)).catch(() => undefined))?.mtimeMs ?? Date.now()),
      );
      return {
        containerIds: containers.filter((name) => name.endsWith(IMAGE)).map((name) => name.slice(0, -IMAGE.length)),
        stored: ids.map((id, at) => ({ id, changedAt: dates[at] ?? Date.now() })),
      };
    },

    work: () => done,
    thaw,
  };
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}

function unlessMissing(error: unknown): void {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  if (code !== "ENOENT") throw error;
}
