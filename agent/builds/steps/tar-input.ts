/** Reads a client's tar, plain or gzip. */

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { AppError } from "../../../shared/http/errors.ts";
import type { ArchiveCheck } from "./archive-rules.ts";

/** Resolves when `unpack` has received all of it. */
export async function readTar(
  source: Readable,
  unpack: NodeJS.WritableStream,
  { progress }: Pick<ArchiveCheck, "progress">,
): Promise<void> {
  const count = { packed: 0, unpacked: 0 };
  const counted = (which: keyof typeof count) =>
    async function* counting(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        count[which] += chunk.length;
        progress(count.packed, count.unpacked);
        yield chunk;
      }
    };
  const input = await peek(source);
  // The first bytes decide whether it is compressed: `gzip: false` of the SDK sends a plain tar.
  if (input.gzip) await pipeline(input.stream, counted("packed"), createGunzip(), counted("unpacked"), unpack);
  else await pipeline(input.stream, counted("packed"), unpack);
}

/** Converts a fault of an archive to an error for its owner. */
export function readable(error: unknown, what: string): Error {
  if (error instanceof AppError) return error;
  return new AppError("bad_request", `the archive ${what} is damaged or is not a tar archive`, { cause: error });
}

async function peek(source: Readable): Promise<{ gzip: boolean; stream: Readable }> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let first = Buffer.alloc(0);
  while (first.length < 2) {
    const next = await chunks.next();
    if (next.done === true) break;
    first = Buffer.concat([first, next.value]);
  }
  async function* all() {
    yield first;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  }
  return { gzip: isGzip(first), stream: Readable.from(all()) };
}

export function isGzip(first: Buffer): boolean {
  return first[0] === 0x1f && first[1] === 0x8b;
}
