/**
 * Unpacks the archive of a COPY step. Not with the image's tar, which it may not have: busybox's passes over the headers that
 * hold long targets of links, and makes links to nothing. The node has checked every entry: each is below the directory.
 */

import {
  chmodSync,
  closeSync,
  createReadStream,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Extract, extract, type Header } from "tar-stream";

type Entry = Extract extends AsyncIterable<infer One> ? One : never;

/** @throws Error, for the log of the build */
export async function unpack(archive: string, into: string): Promise<void> {
  mkdirSync(into);
  const entries = extract();
  const reading = pipeline(createReadStream(archive), entries);
  reading.catch(() => undefined);
  // An entry that is written into a directory changes its time.
  const directories = new Map<string, Header>();
  for await (const entry of entries) {
    const path = join(into, entry.header.name);
    if (entry.header.type === "directory") {
      mkdirSync(path, { recursive: true });
      directories.set(path, entry.header);
    } else await make(path, entry, into);
    entry.resume();
  }
  await reading;
  for (const [path, header] of [...directories].toReversed()) dress(path, header);
}

async function make(path: string, entry: Entry, into: string): Promise<void> {
  const { header } = entry;
  mkdirSync(dirname(path), { recursive: true });
  // Named twice: the later one counts, and a link to the earlier one keeps it.
  rmSync(path, { force: true });
  if (header.type === "link") return linkSync(join(into, header.linkname), path);
  if (header.type === "symlink") {
    symlinkSync(header.linkname, path);
    return lutimesSync(path, header.mtime, header.mtime);
  }
  const file = openSync(path, "wx");
  try {
    for await (const piece of entry) writeAll(file, piece as Buffer);
  } finally {
    closeSync(file);
  }
  dress(path, header);
}

function writeAll(file: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
}

function dress(path: string, { mode, mtime }: Header): void {
  chmodSync(path, mode);
  utimesSync(path, mtime, mtime);
}
