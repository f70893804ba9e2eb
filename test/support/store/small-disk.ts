/** A small file system in memory for a database, which a test may fill without harm to the machine. Needs root. */

import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  readonly place: string;
  freeBytes(): number;
  /** Takes all free space, to the last page, as another program of the host would. */
  fill(): void;
  /** Gives back what `fill` took. */
  makeRoom(): void;
  remove(): void;
}

export function smallDisk(megabytes: number): SmallDisk {
  const place = mkdtempSync(join(tmpdir(), "svc-small-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "svc-test", place]);
  const filler = join(place, "filler");
  return {
    place,
    freeBytes() {
      const { bavail, bsize } = statfsSync(place);
      return bavail * bsize;
    },
    fill() {
      const file = openSync(filler, "a");
      try {
        for (const size of [65_536, 4_096, 1]) writeUntilFull(file, Buffer.alloc(size));
      } finally {
        closeSync(file);
      }
    },
    makeRoom: () => rmSync(filler, { force: true }),
    remove() {
      // Programs that were killed may still be on their way out.
      execFileSync("umount", ["--lazy", place]);
      rmSync(place, { recursive: true });
    },
  };
}

function writeUntilFull(file: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(file, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
