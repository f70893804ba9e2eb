/**
 * A disk of its own for every container: an ext4 image in a sparse file, mounted through a loop device. Its size is what
 * a program inside sees and gets. Stored disks are copies of such images, from which new containers get theirs.
 */

import { existsSync, mkdirSync, realpathSync, statfsSync, statSync } from "node:fs";
import { mkdir, readdir, rename, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { RunCommand } from "../host/command.ts";
import { sync } from "../host/sync.ts";
import { createClones } from "./clones.ts";
import { formatted } from "./formatted.ts";
import { checkLower, imageOfLayer, LAYER, putLayer } from "./layer.ts";
import { isFailed, isOther } from "./mounts.ts";
import { lending } from "./reserve.ts";
import { limitUnwritten } from "./unwritten.ts";

const IMAGE = ".img";
const UNFINISHED = ".new";
/** More copies at a time would only slow each other. Copies for snapshots and for starts do not wait for each other. */
const COPIES_AT_ONCE = 2;
/** For a turn and the copy together; below the time that the orchestrator waits for a snapshot. */
const AHEAD_LIMIT_MS = 80_000;
/** While a sandbox stands still. */
const FINISH_LIMIT_MS = 30_000;
const MOUNT_LIMIT_MS = 60_000;
/** How long it counts that this machine could not make a disk: the cause may be a passing one. */
const RETRY_MS = 60_000;
const MOST_LEFT = 8;
const PROBE = "probe";
const PROBE_MB = 64;
/** `nodev` and `nosuid` hold for the host, which must take neither from a sandbox's files; overlayfs does not pass them on. */
const MOUNT_OPTIONS = "loop,noatime,discard,nodev,nosuid,errors=remount-ro";

export interface Disk {
  readonly containerId: string;
  /** Docker's directory of the container's writable layer. */
  readonly layer: string;
  readonly sizeMb: number;
  /** Id of the image that the container is made of. */
  readonly image: string | undefined;
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
  /** Tries whether this machine can make and mount such disks; the reason if it cannot. */
  unusable(): Promise<string | undefined>;
  has(containerId: string): boolean;
  /** The image of a container's disk, or a stored one. */
  file(of: { readonly containerId: string } | { readonly stored: string }): string;
  /** The host's directory of the container's layer on its disk. */
  layer(containerId: string): string;
  /** Makes the disk of a container that has never run, and puts its layer on it. A stored disk may lack its name yet. */
  make(disk: Disk): Promise<void>;
  /** The image that the container of this disk was made of; undefined: a disk of an earlier version does not say. */
  imageOf(containerId: string): Promise<string | undefined>;
  /**
   * Gives the disk of a container that the engine has lost to a container that has never run. Cut at any line, the disk has
   * one of the two names. @throws {AppError} no_compatible_node when the new container has another image
   */
  takeOver(from: string, disk: Omit<Disk, "sizeMb" | "from">): Promise<void>;
  /**
   * Mounts the disk, as after a reboot, or anew when its file system gave up because the host's disk was full. Nothing to do
   * when it is mounted, or gone. @throws {AppError} snapshot_corrupt
   */
  mount(containerId: string): Promise<void>;
  /** Does the work of a start: on a full disk too there is room for the directories that it makes. */
  lending(containerId: string, work: () => Promise<void>): Promise<void>;
  /** Unmounts and deletes the disk; a copy of it under way fails. An unknown container counts as success. */
  remove(containerId: string): Promise<void>;
  use(containerId: string): DiskUse | undefined;
  /** Writes what programs have written to the image. */
  flush(containerId: string): Promise<void>;
  /** Before the sandbox is frozen: copies most of its disk, so that little is left for `store`. */
  copyAhead(containerId: string, id: string): Promise<void>;
  /** Copies the disk of a frozen sandbox. The copy has no name that counts before `keep`. */
  store(containerId: string, id: string): Promise<void>;
  /** Gives the copy its name. Resolves when it is durable, where that is asked for. */
  keep(id: string, durable: boolean): Promise<void>;
  /** What a stored disk, or its copy before `keep`, takes on the machine's disk. */
  storedBytes(id: string): Promise<number>;
  hasStored(id: string): boolean;
  /** Whether there is a copy that `keep` has not made durable yet. */
  hasDraft(id: string): boolean;
  removeStored(id: string): Promise<void>;
  list(): Promise<{ readonly containerIds: readonly string[]; readonly stored: readonly StoredDisk[] }>;
  work(): DiskWork;
  /** Thaws the file system of a disk whose copy was cut. */
  thaw(containerId: string): Promise<void>;
}

interface HostDisksDeps {
  /** Directory of the images; made if it does not exist. */
  readonly root: string;
  readonly run: RunCommand;
  /** Path of `svc-disk-copy`. */
  readonly copier: () => Promise<string>;
  /** Why this many bytes more may not be written for a copy of a stored disk. */
  readonly refusal: (bytes: number) => Promise<AppError | undefined>;
}

export function hostDisks({ root: given, run, copier, refusal }: HostDisksDeps): Disks {
  mkdirSync(given, { recursive: true, mode: 0o700 });
  // The kernel lists mounts by their real paths.
  const root = realpathSync(given);
  const storedRoot = join(root, "stored");
  const mutex = createKeyedMutex();
  const copies = createSemaphore(COPIES_AT_ONCE);
  const clones = createClones({ run, atOnce: COPIES_AT_ONCE, refusal });
  /** The copier of each disk that is being copied. A sandbox has one snapshot under way at most. */
  const underWay = new Map<string, { readonly cut: AbortController; readonly ended: Promise<unknown> }>();
  const empty = formatted(join(root, "formatted"), run);
  const state = { probed: undefined as Promise<string | undefined> | undefined, probedAt: 0 };

  const image = (containerId: string) => join(root, `${containerId}${IMAGE}`);
  const mountPoint = (containerId: string) => join(root, containerId);
  const layer = (containerId: string) => join(mountPoint(containerId), LAYER);
  const kept = (id: string) => join(storedRoot, `${id}${IMAGE}`);
  const draft = (id: string) => join(storedRoot, `${id}${UNFINISHED}`);
  /** Of a stored disk, which may get its name between the first look and the second. */
  const either = (id: string) => [kept(id), draft(id), kept(id)];

  const isMounted = (place: string) => isOther(place, root);

  const attach = async (file: string, place: string) => {
    if (isMounted(place)) return;
    await mkdir(place, { recursive: true, mode: 0o700 });
    try {
      // The kernel frees the loop device with the mount, and also if this command is killed before it.
      await run("mount", ["-t", "ext4", "-o", MOUNT_OPTIONS, file, place], { timeoutMs: MOUNT_LIMIT_MS });
    } catch (cause) {
      if (/wrong fs type|bad superblock|needs cleaning|can't read superblock/i.test(String(cause)))
        throw new AppError("snapshot_corrupt", "the sandbox's disk cannot be mounted: its image is damaged", { cause });
      throw new AppError("unavailable", "the sandbox's disk could not be mounted now: try again", { cause });
    }
    await limitUnwritten(statSync(place).dev);
  };

  const detach = async (place: string) => {
    if (isMounted(place)) {
      // A Docker daemon that was killed leaves the roots of its containers mounted, each time once more.
      const left = join(place, "layer", "merged");
      for (let times = 0; times < MOST_LEFT && isOther(left, place); times++)
        await run("umount", [left], { timeoutMs: MOUNT_LIMIT_MS }).catch(() => undefined);
      await run("umount", [place], { timeoutMs: MOUNT_LIMIT_MS });
    }
    await rmdir(place).catch(unlessMissing);
  };

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
    if (isMounted(mountPoint(containerId)))
      await run("fsfreeze", ["--unfreeze", mountPoint(containerId)]).catch(() => undefined);
  };

  const copied = async (how: "ahead" | "finish", containerId: string, id: string) => {
    const args = [how, image(containerId), draft(id), mountPoint(containerId)];
    await mkdir(storedRoot, { recursive: true, mode: 0o700 });
    const cut = new AbortController();
    const timeoutMs = how === "ahead" ? AHEAD_LIMIT_MS : FINISH_LIMIT_MS;
    const copying = run(await copier(), args, { timeoutMs, signal: cut.signal });
    underWay.set(containerId, { cut, ended: copying.catch(() => undefined) });
    try {
      await copying;
    } catch (cause) {
      // A copier that was killed has left the disk frozen.
      if (how === "finish") await thaw(containerId);
      await rm(draft(id), { force: true });
      throw (
        noSpace(cause) ??
        new AppError("snapshot_failed", "the sandbox's disk could not be copied; it goes on running", { cause })
      );
    } finally {
      underWay.delete(containerId);
    }
  };

  const remove = (containerId: string) =>
    mutex(containerId, async () => {
      const copy = underWay.get(containerId);
      copy?.cut.abort();
      await copy?.ended;
      await detach(mountPoint(containerId));
      await rm(image(containerId), { force: true });
    });

  const putLayerOf = (disk: Omit<Disk, "sizeMb" | "from">, keep: boolean) =>
    lending(mountPoint(disk.containerId), () => putLayer({ ...disk, own: layer(disk.containerId), keep }, run));

  const put = async (disk: Disk) => {
    const { containerId, sizeMb, from } = disk;
    if (from === undefined) await clones.clone(await empty(sizeMb), image(containerId));
    else await clones.cloneStored(either(from), image(containerId));
    await attach(image(containerId), mountPoint(containerId));
    await putLayerOf(disk, from !== undefined);
  };

  const probe = async () => {
    try {
      // An agent that was killed in a probe has left it mounted: its image must not be written to.
      await remove(PROBE);
      await clones.clone(await empty(PROBE_MB), image(PROBE));
      await attach(image(PROBE), mountPoint(PROBE));
      await remove(PROBE);
      return undefined;
    } catch (error) {
      await remove(PROBE).catch(() => undefined);
      state.probedAt = performance.now();
      return error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    }
  };

  return {
    root,

    async unusable() {
      const known = await state.probed;
      if (state.probed === undefined || (known !== undefined && performance.now() - state.probedAt > RETRY_MS))
        state.probed = probe();
      return state.probed;
    },

    has: (containerId) => existsSync(image(containerId)),
    file: (of) => ("stored" in of ? kept(of.stored) : image(of.containerId)),
    layer,

    make: (disk) =>
      counted("make", () =>
        mutex(disk.containerId, () =>
          put(disk).catch((error: unknown) => {
            throw noSpace(error) ?? error;
          }),
        ),
      ),

    imageOf: (containerId) =>
      mutex(containerId, async () => {
        await attach(image(containerId), mountPoint(containerId));
        return imageOfLayer(layer(containerId));
      }),

    takeOver: (from, disk) =>
      mutex(from, async () => {
        await attach(image(from), mountPoint(from));
        await checkLower(layer(from), disk.layer);
        await detach(mountPoint(from));
        await rename(image(from), image(disk.containerId));
        await sync(root);
        await attach(image(disk.containerId), mountPoint(disk.containerId));
        await putLayerOf(disk, true);
      }),

    async mount(containerId) {
      const place = mountPoint(containerId);
      if (isMounted(place) && !(await isFailed(place))) return;
      await mutex(containerId, async () => {
        // A disk in use stays as it is.
        if (await isFailed(place)) await detach(place).catch(() => undefined);
        // A removal may have been first.
        if (existsSync(image(containerId))) await attach(image(containerId), place);
      });
    },
    lending: (containerId, work) => lending(mountPoint(containerId), work),
    remove,

    use(containerId) {
      try {
        if (!isMounted(mountPoint(containerId))) return undefined;
        const { blocks, bfree, bsize, files, ffree } = statfsSync(mountPoint(containerId));
        return { usedBytes: (blocks - bfree) * bsize, usedInodes: files - ffree };
      } catch {
        // The container has just been removed.
        return undefined;
      }
    },

    async flush(containerId) {
      await run("sync", ["--file-system", mountPoint(containerId)], { timeoutMs: FINISH_LIMIT_MS });
    },

    async copyAhead(containerId, id) {
      const release = await copies.take(AbortSignal.timeout(AHEAD_LIMIT_MS));
      try {
        await counted("ahead", () => copied("ahead", containerId, id));
      } finally {
        release();
      }
    },
    store: (containerId, id) => counted("frozen", () => copied("finish", containerId, id)),

    async keep(id, durable) {
      if (durable) await sync(draft(id));
      await rename(draft(id), kept(id));
      if (durable) await sync(storedRoot);
    },

    storedBytes: (id) => clones.bytes(either(id)),
    hasStored: (id) => existsSync(kept(id)),
    hasDraft: (id) => existsSync(draft(id)),

    async removeStored(id) {
      await rm(draft(id), { force: true });
      await rm(kept(id), { force: true });
    },

    async list() {
      const [containers, stored] = await Promise.all([namesIn(root), namesIn(storedRoot)]);
      const own = stored.filter((name) => !name.startsWith("."));
      const ids = own.map((name) => name.replace(/\.(img|new)$/, ""));
      const dates = await Promise.all(
        own.map(async (name) => (await stat(join(storedRoot, name)).catch(() => undefined))?.mtimeMs ?? Date.now()),
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

/** The end of the host's disk, as programs and Node report it. */
function noSpace(cause: unknown): AppError | undefined {
  if (!/No space left|ENOSPC/.test(String(cause))) return undefined;
  return new AppError("no_space", "the node has no space left for the sandbox's disk", { cause });
}

function unlessMissing(error: unknown): void {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  if (code !== "ENOENT") throw error;
}
