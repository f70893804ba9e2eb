/**
 * Converts an uploaded OCI layout in a tar to the archive that the Docker daemon loads, in one pass and with little
 * memory. Nothing in it is trusted: only regular files named after their own sha256 pass, and the list that makes an
 * image of them comes last. Until then Docker stores the files without using them.
 */

import { createHash, type Hash } from "node:crypto";
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract, type Header, type Pack, pack } from "tar-stream";
import { AppError } from "../../../shared/http/errors.ts";
import { ARCHIVE_LIMITS, type ArchiveCheck, type ArchiveLimits, createArchiveCheck } from "../steps/archive-rules.ts";
import { isGzip, readable, readTar } from "../steps/tar-input.ts";
import { createLayerEntries, type LayerEntries } from "./layer-entries.ts";
import { type Blob, chooseImage, type Wanted } from "./oci-layout.ts";

export interface EngineArchiveOptions extends Wanted {
  /** Name of the image in the Docker daemon. */
  readonly name: string;
  readonly limits?: ArchiveLimits;
}

/** An image has at most 127 layers, and an archive a few images. */
export const IMAGE_LIMITS: ArchiveLimits = { ...ARCHIVE_LIMITS, entries: 4_000 };

type Content = AsyncIterable<unknown>;

const SMALL_BYTES = 1024 * 1024;
const KEPT_BYTES = 32 * SMALL_BYTES;
const BLOB = /^blobs\/sha256\/([0-9a-f]{64})$/;
/** Magic bytes that Docker recognises: bzip2, xz, zstd and its skippable frames. */
const OTHER_PACKINGS = /^(?:425a68|fd377a58|28b52ffd|5[0-9a-f]2a4d18)/;
/** Number of leading bytes that show the format. */
const HEAD_BYTES = 8;

/** Ends with the source. A faulty archive destroys the stream with the reason (`AppError` bad_request). */
export function engineArchive(source: Readable, options: EngineArchiveOptions): Readable {
  const output = pack();
  const result = new PassThrough();
  const gone = new AbortController();
  // The reader gets this error too; without a listener here it would end the process.
  result.on("error", () => undefined);
  // The reader has disconnected or read everything: unpacking stops.
  result.once("close", () => {
    gone.abort();
    source.destroy();
    output.destroy();
  });
  const converted = convert(source, output, options);
  converted.catch((error: unknown) => {
    source.destroy();
    output.destroy(error as Error);
  });
  const passOn = async () => {
    for await (const chunk of output) if (!result.write(chunk)) await once(result, "drain", { signal: gone.signal });
    await converted;
    result.end();
  };
  passOn().catch(async (error: unknown) => {
    // The source's fault is the reason, not the error that it causes in the output.
    const reason = await converted.then(
      () => error,
      (first: unknown) => first,
    );
    result.destroy(readable(reason, "of the image"));
  });
  return result;
}

async function convert(source: Readable, output: Pack, options: EngineArchiveOptions): Promise<void> {
  const { limits = IMAGE_LIMITS, name } = options;
  const check = createArchiveCheck({ limits, keepSetuid: false });
  const state: State = { blobs: new Map(), index: undefined, keptBytes: 0, unpackedBytes: 0, output, check, limits };
  const unpack = extract();
  // The pipeline reports its errors, but it emits them again later: an error without a listener would end the process.
  for (const stream of [unpack, output]) stream.on("error", () => undefined);
  const taken = async (header: Header, content: Content, next: () => void) => {
    try {
      await take(header, content, state);
      next();
    } catch (error) {
      unpack.destroy(error as Error);
    }
  };
  unpack.on("entry", (header, content, next) => {
    content.on("error", () => undefined);
    void taken(header, content, next);
  });
  await readTar(source, unpack, check);
  if (state.index === undefined)
    throw new AppError("bad_request", "the archive is not an OCI layout: it has no index.json");
  const { config, layers } = chooseImage(state.index, state.blobs, options);
  const manifest = [{ Config: blobName(config), RepoTags: [name], Layers: layers.map(blobName) }];
  output.entry({ name: "manifest.json", mode: 0o644 }, JSON.stringify(manifest));
  output.finalize();
}

interface State {
  readonly blobs: Map<string, Blob>;
  index: Buffer | undefined;
  keptBytes: number;
  unpackedBytes: number;
  readonly output: Pack;
  readonly check: ArchiveCheck;
  readonly limits: ArchiveLimits;
}

async function take(header: Header, content: Content, state: State): Promise<void> {
  const { name, size, mode, type, linkname, mtime } = header;
  const clean = state.check.entry({ name, size, mode, type: type ?? "file", linkname: linkname ?? undefined, mtime });
  const digits = BLOB.exec(clean?.name ?? "")?.[1];
  if (clean?.type !== "file") {
    if (clean !== undefined && clean.type !== "directory") throw refused(clean.name, "it is a link");
    return drop(content);
  }
  if (clean.name === "index.json") {
    if (size > SMALL_BYTES) throw refused(clean.name, "it is too large");
    state.index = await kept(content);
    return undefined;
  }
  if (digits === undefined) return drop(content);
  if (state.blobs.has(digits)) throw refused(clean.name, "it is in the archive twice");
  state.blobs.set(digits, await pass(content, { digits, size }, state));
}

/** Passes blobs to Docker and inspects them on the way. */
async function pass(content: Content, { digits, size }: { digits: string; size: number }, state: State): Promise<Blob> {
  const hash = createHash("sha256");
  const small = size <= SMALL_BYTES && state.keptBytes + size <= KEPT_BYTES ? ([] as Buffer[]) : undefined;
  if (small !== undefined) state.keptBytes += size;
  let packing: Blob["packing"] = "none";
  let unpackedDigits = digits;
  const entries = createLayerEntries();
  async function* watched() {
    let layer: Unpacked | undefined;
    let first = true;
    for await (const chunk of withHead(content)) {
      if (first) packing = packingOf(chunk);
      if (first && packing === "gzip") layer = unpacked(size, state, entries);
      first = false;
      if (packing === "none") entries.push(chunk);
      hash.update(chunk);
      small?.push(chunk);
      await layer?.write(chunk);
      yield chunk;
    }
    if (layer !== undefined) unpackedDigits = await layer.end();
  }
  const sink = state.output.entry({ name: blobName(digits), size, mode: 0o644 }, () => undefined);
  sink.on("error", () => undefined);
  await pipeline(watched, sink);
  expectDigest(hash, digits);
  return {
    size,
    packing,
    unpacked: unpackedDigits,
    problem: entries.problem,
    content: small === undefined || packing !== "none" ? undefined : Buffer.concat(small),
  };
}

/** Yields the content with a first piece that is long enough to recognise the format. */
async function* withHead(content: Content): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of content as AsyncIterable<Buffer>) {
    if (head === undefined) yield chunk;
    else {
      head = Buffer.concat([head, chunk]);
      if (head.length < HEAD_BYTES) continue;
      yield head;
      head = undefined;
    }
  }
  if (head !== undefined && head.length > 0) yield head;
}

interface Unpacked {
  write(chunk: Buffer): Promise<void>;
  /** Hexadecimal sha256 of the unpacked content. */
  end(): Promise<string>;
}

/** Measures what a compressed layer unpacks to: its size, because Docker would fill the disk, and its digest. */
function unpacked(packed: number, state: State, entries: LayerEntries): Unpacked {
  const gunzip = createGunzip();
  const trouble = { error: undefined as Error | undefined, tell: (_error: Error) => undefined as unknown };
  gunzip.on("error", (cause) => {
    trouble.error = readable(cause, "of the image");
    trouble.tell(trouble.error);
  });
  const hash = createHash("sha256");
  let bytes = 0;
  gunzip.on("data", (chunk: Buffer) => {
    hash.update(chunk);
    entries.push(chunk);
    bytes += chunk.length;
    state.unpackedBytes += chunk.length;
    try {
      state.check.progress(packed, bytes);
      if (state.unpackedBytes > state.limits.bytes)
        throw new AppError("bad_request", `the image unpacks to more than ${state.limits.bytes} bytes`);
    } catch (error) {
      gunzip.destroy(error as Error);
    }
  });
  // A failed stream does not call back for the chunk that failed.
  const unlessBroken = (begin: (done: () => void) => void) =>
    new Promise<void>((resolve, reject) => {
      if (trouble.error !== undefined) reject(trouble.error);
      trouble.tell = reject;
      begin(resolve);
    });
  return {
    write: (chunk) => unlessBroken((done) => gunzip.write(chunk, () => done())),
    async end() {
      await unlessBroken((done) => {
        // Bytes behind the compressed ones end the stream before the reader ends it; Docker decides whether it takes such a layer.
        if (gunzip.readableEnded) done();
        else gunzip.once("end", done);
        gunzip.end();
      });
      return hash.digest("hex");
    },
  };
}

function expectDigest(hash: Hash, digits: string): void {
  if (hash.digest("hex") !== digits) throw refused(blobName(digits), "its content has another sha256");
}

function packingOf(first: Buffer): Blob["packing"] {
  if (isGzip(first)) return "gzip";
  return OTHER_PACKINGS.test(first.toString("hex", 0, HEAD_BYTES)) ? "other" : "none";
}

function blobName(digits: string): string {
  return `blobs/sha256/${digits}`;
}

async function drop(content: Content): Promise<undefined> {
  for await (const _chunk of content);
  return undefined;
}

async function kept(content: Content): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of content) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function refused(name: string, why: string): AppError {
  return new AppError("bad_request", `the archive of the image is refused because of '${name}': ${why}`);
}
