/** Notes for the OCI runtime wrapper, one directory a container: which network namespace it is to join. */

import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface Marks {
  /** After the container was created and before it is started. */
  joinNetwork(containerId: string, netnsPath: string): Promise<void>;
  remove(containerId: string): Promise<void>;
  list(): Promise<string[]>;
}

export function hostMarks(runDirectory: string): Marks {
  const root = join(runDirectory, "containers");
  return {
    async joinNetwork(containerId, netnsPath) {
      const directory = join(root, containerId);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await writeFile(join(directory, "netns"), `${netnsPath}\n`);
    },
    remove: (containerId) => rm(join(root, containerId), { recursive: true, force: true }),
    list: () => readdir(root).catch(() => []),
  };
}
