/** Rewrites a client's archive as a plain tar that holds only what the rules allow, entry by entry. */

import { PassThrough, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Pack, pack } from "tar-stream";
import type { ArchiveCheck } from "./archive-rules.ts";
import { readable, readTar } from "./tar-input.ts";

const PIECE_BYTES = 256 * 1024;

/**
 * Ends with the source. A fault of the archive destroys the stream with the reason (`AppError` bad_request), so nothing
 * after the first bad entry is passed on.
 */
export function cleanArchive(source: Readable, check: ArchiveCheck): Readable {
  const output = pack();
  const result = new PassThrough();
  const wrong = rewrite(source, check, output).then(
    () => undefined,
    (error: unknown) => {
      source.destroy();
      output.destroy();
      return error;
    },
  );
  async function* passed() {
    try {
      yield* gathered(output);
    } catch (error) {
      // The output fails together with the archive, perhaps earlier. The archive's own error is the reason.
      throw readable((await wrong) ?? error, "of the files");
    }
  }
  // Destroys the result with the reason. A reader that disconnects early gets no reason.
  pipeline(passed, result).catch(() => undefined);
  result.once("close", () => {
    source.destroy();
    output.destroy();
  });
  return result;
}

async function rewrite(source: Readable, check: ArchiveCheck, output: Pack): Promise<void> {
  const unpack = extract();
  // The pipeline reports its errors, but it emits them again later: an error without a listener would end the process.
  for (const stream of [unpack, output]) stream.on("error", () => undefined);
  unpack.on("entry", (header, content, next) => {
    const done = (error?: Error | null) => (error === undefined || error === null ? next() : unpack.destroy(error));
    content.on("error", () => undefined);
    try {
      const clean = check.entry({
        name: header.name,
        type: header.type,
        size: header.size ?? 0,
        mode: header.mode ?? 0o644,
        linkname: header.linkname ?? undefined,
        mtime: header.mtime,
      });
      if (clean === undefined) {
        content.once("end", next);
        content.resume();
        return;
      }
      const entry = output.entry({ ...clean, uid: 0, gid: 0, uname: "root", gname: "root" }, done);
      entry.on("error", () => undefined);
      if (clean.type === "file") content.pipe(entry);
      else content.resume();
    } catch (error) {
      unpack.destroy(error as Error);
    }
  });
  await readTar(source, unpack, check);
  output.finalize();
}

/** Joins small pieces, because many small files would otherwise make as many small writes. */
async function* gathered(chunks: AsyncIterable<unknown>) {
  let held: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    held.push(chunk);
    size += chunk.length;
    if (size < PIECE_BYTES) continue;
    yield Buffer.concat(held);
    held = [];
    size = 0;
  }
  yield Buffer.concat(held);
}
