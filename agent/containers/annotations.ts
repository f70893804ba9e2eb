/**
 * Notes for the OCI runtime wrapper, one directory per container: the network namespace to join, the volumes to mount, and
 * the memory image to start with.
 */

import { lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../shared/http/errors.ts";

/** A start takes some hundred milliseconds until it waits. */
const POLL_MS = 10;
const VOLUME_OPTIONS = ["bind", "rw", "nosuid", "nodev", "rprivate"];

export interface Annotations {
  /**
   * Written after the container was created and before it is started.
   * @param connections whether a dump keeps TCP connections; false for memory whose dump has closed them
   */
  joinNetwork(containerId: string, netnsPath: string, connections?: boolean): Promise<void>;
  /**
   * Lets the container rename directories of its image, where it has a disk of its own. Not for a container that Docker
   * commits: the layer then holds the new name and a note of the old one, and a commit loses the note. Before it is started.
   */
  allowRenames(containerId: string): Promise<void>;
  /** Directories of the host that every start and restore of the container binds into it. Before it is started. */
  mountVolumes(
    containerId: string,
    mounts: readonly { readonly source: string; readonly path: string }[],
  ): Promise<void>;
  /** Where the container sees volumes. */
  volumePaths(containerId: string): Promise<string[]>;
  /**
   * Makes the next start do all that needs no memory, and then wait for `restore`. It fails when none comes for 40 s, and once
   * the annotations are removed.
   */
  awaitMemory(containerId: string): Promise<void>;
  /** Resolves when that start waits. The signal ends the wait, and so do annotations that are gone. */
  waitsForMemory(containerId: string, signal: AbortSignal): Promise<void>;
  /**
   * Makes the next start, or one that waits, restore this memory.
   * @param serve starts a page server in `criuDirectory`: the memory is restored lazily
   */
  restore(containerId: string, images: string, serve?: () => Promise<unknown>): Promise<void>;
  /** Whether the start has restored the memory. */
  wasRestored(containerId: string): Promise<boolean>;
  criuDirectory(containerId: string): string;
  remove(containerId: string): Promise<void>;
  /** Ends the starts that wait for memory: an earlier process of the agent began them, and Docker says nothing of their containers. */
  callOff(): Promise<void>;
  list(): Promise<string[]>;
}

export function hostAnnotations(runDirectory: string): Annotations {
  const root = join(runDirectory, "containers");
  return {
    async joinNetwork(containerId, netnsPath, connections = true) {
      const directory = join(root, containerId);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      if (connections) await writeFile(join(directory, "connections"), "");
      await writeFile(join(directory, "netns"), `${netnsPath}\n`);
    },
    async allowRenames(containerId) {
      await mkdir(join(root, containerId), { recursive: true, mode: 0o700 });
      await writeFile(join(root, containerId, "renames"), "");
    },
    async mountVolumes(containerId, mounts) {
      const text = mounts.map(({ source, path }) =>
        JSON.stringify({ destination: path, type: "bind", source, options: VOLUME_OPTIONS }),
      );
      // svc-runc puts the text into config.json by sed, and svc-confine reads the sources from there.
      if (!text.every((one) => /^[^\s|&\\]+$/.test(one)))
        throw new AppError("failed_precondition", "the path of a volume's mount has characters that cannot be mounted");
      await mkdir(join(root, containerId), { recursive: true, mode: 0o700 });
      await writeFile(join(root, containerId, "mounts"), `${text.map((one) => `${one},`).join("")}\n`);
    },
    async volumePaths(containerId) {
      const text = await readFile(join(root, containerId, "mounts"), "utf8").catch(() => "");
      const mounts = JSON.parse(`[${text.trim().replace(/,$/, "")}]`) as { readonly destination: string }[];
      return mounts.map(({ destination }) => destination);
    },
    awaitMemory: (containerId) => writeFile(join(root, containerId, "waits"), ""),
    async waitsForMemory(containerId, signal) {
      while (!signal.aborted && (await has(join(root, containerId, "waits")))) await delay(POLL_MS);
    },
    async restore(containerId, images, serve) {
      const directory = join(root, containerId);
      await mkdir(join(directory, "criu"), { recursive: true, mode: 0o700 });
      if (serve !== undefined) {
        await writeFile(join(directory, "lazy"), "");
        await serve();
      }
      // The last: a start may wait for it.
      await symlink(images, join(directory, "restore"));
    },
    wasRestored: (containerId) => has(join(root, containerId, "restored")),
    criuDirectory: (containerId) => join(root, containerId, "criu"),
    remove: (containerId) => rm(join(root, containerId), { recursive: true, force: true }),
    async callOff() {
      const waiting = async (id: string) =>
        (await has(join(root, id, "waits"))) || (await has(join(root, id, "waiting")));
      for (const id of await readdir(root).catch(() => []))
        if (await waiting(id)) await rm(join(root, id), { recursive: true, force: true });
    },
    list: () => readdir(root).catch(() => []),
  };
}

function has(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
