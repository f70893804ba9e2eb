/** Empty disk images, one for each size: made once, then copied, which takes a few milliseconds. */

import { mkdir, open, rename, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { RunCommand } from "../host/command.ts";

const MIB = 1024 ** 2;
const BLOCK = 4096;
/** A smaller file system has no room for its journal. */
const LEAST_MB = 64;
/** The image grows by what the file system itself takes, which grows with it; two rounds are enough. */
const ROUNDS = 3;
const SUPERBLOCK = 1024;
/** Of ext4's superblock: blocks that the file system takes for itself. */
const OVERHEAD = 0x248;
const OPTIONS = [
  "-q",
  "-F",
  "-b",
  String(BLOCK),
  "-i",
  "16384",
  "-I",
  "256",
  "-m",
  "0",
  "-J",
  "size=16",
  "-E",
  "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
  "-O",
  "^resize_inode,64bit,metadata_csum",
];

/** Resolves to the path of an empty image whose file system shows `sizeMb` MiB to programs. */
export function formatted(directory: string, run: RunCommand): (sizeMb: number) => Promise<string> {
  const mutex = createKeyedMutex();
  const made = new Set<string>();
  return (sizeMb) =>
    mutex(String(sizeMb), async () => {
      const path = join(directory, `${sizeMb}.img`);
      if (made.has(path)) return path;
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const draft = `${path}.new`;
      const wanted = Math.max(sizeMb, LEAST_MB) * MIB;
      let bytes = wanted;
      for (let round = 0; round < ROUNDS; round++) {
        await rm(draft, { force: true });
        await (await open(draft, "w", 0o600)).close();
        await truncate(draft, bytes);
        await run("mkfs.ext4", [...OPTIONS, draft]);
        const overhead = await overheadOf(draft);
        if (bytes - overhead >= wanted) break;
        bytes = wanted + overhead;
      }
      await rename(draft, path);
      made.add(path);
      return path;
    });
}

/** Bytes that the file system of an image takes for itself. */
export async function overheadOf(image: string): Promise<number> {
  const file = await open(image, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, SUPERBLOCK + OVERHEAD);
    return buffer.readUInt32LE(0) * BLOCK;
  } finally {
    await file.close();
  }
}
