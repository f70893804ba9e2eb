/**
 * Notes for the OCI runtime wrapper, one directory per container: the network namespace to join, and the memory image
 * to start with.
 */

import { mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface Annotations {
  /**
   * Written after the container was created and before it is started.
   * @param connections whether a dump keeps TCP connections; false for memory whose dump has closed them
   */
  joinNetwork(containerId: string, netnsPath: string, connections?: boolean): Promise<void>;
  /** Makes the next start restore this memory; lazily when a page server listens in `criuDirectory`. */
  restore(containerId: string, images: string, lazy: boolean): Promise<void>;
  criuDirectory(containerId: string): string;
  remove(containerId: string): Promise<void>;
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
    async restore(containerId, images, lazy) {
      const directory = join(root, containerId);
      await mkdir(join(directory, "criu"), { recursive: true, mode: 0o700 });
      if (lazy) await writeFile(join(directory, "lazy"), "");
      await symlink(images, join(directory, "restore"));
    },
    criuDirectory: (containerId) => join(root, containerId, "criu"),
    remove: (containerId) => rm(join(root, containerId), { recursive: true, force: true }),
    list: () => readdir(root).catch(() => []),
  };
}
