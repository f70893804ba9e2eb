/**
 * The volumes of this node: each an ext4 image in a sparse file, mounted once. Its size is its quota. What sandboxes see is
 * the directory `files` in it; beside it, in `tmp`, is what is being written or removed. Mounts outlive the agent.
 */

import { existsSync, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { chmod, chown, mkdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { RunCommand } from "../host/command.ts";
import { sync } from "../host/sync.ts";
import { formatted, overheadOf } from "../sandbox-disks/formatted.ts";

const IMAGE = ".img";
const UNFINISHED = ".new";
const MIB = 1024 ** 2;
const BLOCK = 512;
const MOUNT_LIMIT_MS = 60_000;
/** Neither the host nor a sandbox takes rights or devices from the files. */
const MOUNT_OPTIONS = "loop,noatime,discard,nodev,nosuid,errors=remount-ro";
/** The user of the base template. The root of a volume is open to every user of the sandboxes that mount it. */
const OWNER = 1000;
const ROOT_MODE = 0o777;

export interface VolumeUse {
  readonly id: string;
  /** Of the image, with what the file system takes for itself. */
  readonly sizeMb: number;
  readonly usedBytes: number;
}

export interface Volumes {
  /** Makes an empty volume. Nothing to do when it exists. */
  make(id: string, sizeMb: number): Promise<void>;
  /** Where the volume is mounted, after a reboot again. @throws {AppError} not_found, snapshot_corrupt, unavailable */
  open(id: string): Promise<string>;
  /** Unmounts and deletes the volume. An unknown one counts as success. */
  remove(id: string): Promise<void>;
  list(): VolumeUse[];
  /** What may be written to the volume; undefined: it has just been deleted. */
  capacityMb(id: string): Promise<number | undefined>;
}

interface HostVolumesDeps {
  /** Directory of the images; made if it does not exist. */
  readonly root: string;
  readonly run: RunCommand;
}

/** The directory of a mounted volume that sandboxes see. */
export function filesOf(directory: string): string {
  return join(directory, "files");
}

/** What is being written or removed. It is made last: a volume that has it has all that it needs. */
function temporaryOf(directory: string): string {
  return join(directory, "tmp");
}

/** Makes what a volume has beside its files. Nothing to do where it is there. */
export async function createLayout(directory: string): Promise<void> {
  if (!existsSync(filesOf(directory))) {
    // It gets its name last: a directory with this name has its owner and its mode.
    const draft = join(directory, "new");
    await mkdir(draft, { recursive: true });
    await chown(draft, OWNER, OWNER);
    await chmod(draft, ROOT_MODE);
    await rename(draft, filesOf(directory));
  }
  // What an upload or a removal left that a crash cut.
  await rm(temporaryOf(directory), { recursive: true, force: true });
  await mkdir(temporaryOf(directory), { mode: 0o700 });
}

export function hostVolumes({ root: given, run }: HostVolumesDeps): Volumes {
  mkdirSync(given, { recursive: true, mode: 0o700 });
  // The kernel lists mounts by their real paths.
  const root = realpathSync(given);
  const mutex = createKeyedMutex();
  const empty = formatted(join(root, "formatted"), run);
  const image = (id: string) => join(root, `${id}${IMAGE}`);
  const place = (id: string) => join(root, id);
  const isMounted = (id: string) => existsSync(place(id)) && statSync(place(id)).dev !== statSync(root).dev;

  const attach = async (id: string) => {
    await mkdir(place(id), { recursive: true, mode: 0o700 });
    try {
      // The kernel frees the loop device with the mount, and also if this command is killed before it.
      await run("mount", ["-t", "ext4", "-o", MOUNT_OPTIONS, image(id), place(id)], { timeoutMs: MOUNT_LIMIT_MS });
    } catch (cause) {
      if (/wrong fs type|bad superblock|needs cleaning|can't read superblock/i.test(String(cause)))
        throw new AppError("snapshot_corrupt", "the volume cannot be mounted: its image is damaged", { cause });
      throw new AppError("unavailable", "the volume could not be mounted now: try again", { cause });
    }
  };

  return {
    make: (id, sizeMb) =>
      mutex(id, async () => {
        if (existsSync(image(id))) return;
        const draft = join(root, `${id}${UNFINISHED}`);
        await run("cp", ["--reflink=auto", "--sparse=always", "--", await empty(sizeMb), draft]);
        await sync(draft);
        await rename(draft, image(id));
        await sync(root);
      }),

    open: (id) =>
      mutex(id, async () => {
        if (!existsSync(image(id))) throw new AppError("not_found", "this node does not have the volume");
        const wasMounted = isMounted(id);
        if (!wasMounted) await attach(id);
        // An agent that was killed right after a mount has made no layout.
        if (!wasMounted || !existsSync(temporaryOf(place(id)))) await createLayout(place(id));
        return place(id);
      }),

    remove: (id) =>
      mutex(id, async () => {
        // Twice where a mount that was killed had come through.
        while (isMounted(id)) await run("umount", [place(id)], { timeoutMs: MOUNT_LIMIT_MS });
        await rm(image(id), { force: true });
        await rm(join(root, `${id}${UNFINISHED}`), { force: true });
        await rmdir(place(id)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== "ENOENT") throw error;
        });
        await sync(root);
      }),

    async capacityMb(id) {
      try {
        const overhead = await overheadOf(image(id));
        return Math.round((statSync(image(id)).size - overhead) / MIB);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw error;
      }
    },

    list: () =>
      readdirSync(root)
        .filter((name) => name.endsWith(IMAGE))
        .flatMap((name) => {
          const about = statSync(join(root, name), { throwIfNoEntry: false });
          if (about === undefined) return [];
          const id = name.slice(0, -IMAGE.length);
          return [{ id, sizeMb: Math.ceil(about.size / MIB), usedBytes: about.blocks * BLOCK }];
        }),
  };
}
