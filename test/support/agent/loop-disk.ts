/** A file system on a loop device: a host's disk that a test may fill without harm to the machine. */

import { execFile } from "node:child_process";
import { mkdir, rm, statfs, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const MIB = 2 ** 20;

export interface LoopDisk {
  readonly place: string;
  freeMb(): Promise<number>;
  /** Takes all free space but so many MiB at once, as another program of the host would. */
  fill(butMb: number): Promise<void>;
  /** Gives back what `fill` took. */
  unfill(): Promise<void>;
  close(): Promise<void>;
}

export async function loopDisk(place: string, mb: number): Promise<LoopDisk> {
  const image = `${place}.img`;
  const fillers: string[] = [];
  await mkdir(place, { recursive: true });
  await writeFile(image, "");
  await truncate(image, mb * MIB);
  await run("mkfs.ext4", ["-q", "-F", "-m", "0", image]);
  await run("mount", ["-o", "loop", image, place]);
  const freeMb = async () => {
    const { bavail, bsize } = await statfs(place);
    return (bavail * bsize) / MIB;
  };
  return {
    place,
    freeMb,
    async fill(butMb) {
      for (;;) {
        const length = Math.floor((await freeMb()) - butMb);
        if (length <= 0) return;
        const filler = join(place, `filler-${fillers.length}`);
        fillers.push(filler);
        // It fails where another program was faster, and keeps what it got.
        await run("fallocate", ["--length", `${length}MiB`, filler]).catch(() => undefined);
      }
    },
    async unfill() {
      for (const filler of fillers.splice(0)) await rm(filler, { force: true });
    },
    async close() {
      await run("umount", ["--lazy", place]);
      await rm(place, { recursive: true });
      await rm(image);
    },
  };
}
