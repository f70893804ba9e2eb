/** Reads the contents of a tar archive by name, in its order. */

import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { extract } from "tar-stream";

export async function untarred(archive: Readable | Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const unpack = extract();
  const read = pipeline(Buffer.isBuffer(archive) ? Readable.from([archive]) : archive, unpack);
  read.catch(() => undefined);
  for await (const entry of unpack) files.set(entry.header.name, await buffer(entry));
  await read;
  return files;
}
