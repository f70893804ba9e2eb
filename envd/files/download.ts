/** GET /files: one file, whole or in part, as it is or compressed. */

import { type BigIntStats, constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { AppError } from "../../shared/http/errors.ts";
import { sendNothing } from "../bodies/reply.ts";
import { openFollowed } from "../filesystem/followed.ts";
import { refuseForeign } from "../filesystem/place.ts";
import type { Session } from "../init/session.ts";
import { lateZlib } from "../runtime/late-builtins.ts";
import { naming } from "../system/errno.ts";
import { checkConditions, chooseRange, rangeApplies, type Span, versionOf } from "./byte-range.ts";
import { contentDisposition, contentType } from "./content-type.ts";
import { negotiateEncoding } from "./negotiate.ts";
import { restUser } from "./upload.ts";

/** Size of one read: large enough that the calls cost little, small enough that many downloads fit into memory. */
const CHUNK_BYTES = 512 * 1024;
/** Compression level of gzip: speed, not size, because clients are rarely far away. */
const FASTEST_LEVEL = 1;
/** Limit for a file whose size is not known. */
const LARGEST_HEAD_BYTES = 64 * 1024 * 1024;

/** @throws {AppError} not_found, bad_request when the path is not a regular file, unauthorized, not_acceptable */
export async function downloadFile(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  session: Session,
): Promise<void> {
  const user = restUser(session, query);
  const path = session.path(query.get("path") ?? "", user);
  // Non-blocking, so that a pipe without a writer is refused instead of waited for.
  const file = await openFollowed(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(naming(path));
  try {
    await refuseForeign(file, path, "read");
    const stats = await file.stat({ bigint: true });
    if (stats.isDirectory()) throw new AppError("bad_request", `path '${path}' is a directory`);
    if (!stats.isFile()) throw new AppError("bad_request", `path '${path}' is not a regular file`);
    await send(request, response, { file, path, stats }).catch(naming(path));
  } finally {
    await file.close();
  }
}

interface OpenedFile {
  readonly file: FileHandle;
  readonly path: string;
  readonly stats: BigIntStats;
}

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { file, path, stats }: OpenedFile,
): Promise<void> {
  const { headers } = request;
  const size = Number(stats.size);
  const encoding =
    headers.range === undefined ? negotiateEncoding(header(headers["accept-encoding"]), size) : "identity";
  const version = versionOf(stats);
  response.setHeader("Content-Type", contentType(path));
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("Content-Disposition", contentDisposition(path));
  response.setHeader("Last-Modified", new Date(version.modifiedMs).toUTCString());
  response.appendHeader("Vary", "Accept-Encoding");
  const conditions = {
    ifMatch: headers["if-match"],
    ifNoneMatch: headers["if-none-match"],
    ifModifiedSince: headers["if-modified-since"],
    ifUnmodifiedSince: headers["if-unmodified-since"],
  };
  switch (checkConditions(conditions, version)) {
    case "not modified":
      sendNothing(response, 304);
      return;
    case "failed":
      sendNothing(response, 412);
      return;
    case "send":
      break;
  }
  // Files of the kernel report size 0, or a page: their length is known only after reading.
  const head = size <= CHUNK_BYTES ? await readHead(file, size) : undefined;
  const body = { file, size: head?.length ?? size, head, headOnly: request.method === "HEAD" };
  if (encoding === "gzip" && body.size > 0) {
    await sendGzip(response, body);
    return;
  }
  response.setHeader("ETag", version.etag);
  response.setHeader("Accept-Ranges", "bytes");
  const wanted = rangeApplies(header(headers["if-range"]), version) ? headers.range : undefined;
  await sendIdentity(response, body, chooseRange(wanted, body.size));
}

interface Body {
  readonly file: FileHandle;
  readonly size: number;
  /** The whole file, when it is small. */
  readonly head: Buffer | undefined;
  readonly headOnly: boolean;
}

async function sendIdentity(
  response: ServerResponse,
  body: Body,
  range: ReturnType<typeof chooseRange>,
): Promise<void> {
  if (range === "none") {
    response.setHeader("Content-Range", `bytes */${body.size}`);
    sendNothing(response, 416);
    return;
  }
  const span: Span = range === "all" ? { from: 0, to: body.size - 1 } : range;
  response.setHeader("Content-Length", span.to - span.from + 1);
  if (range !== "all") response.setHeader("Content-Range", `bytes ${span.from}-${span.to}/${body.size}`);
  response.writeHead(range === "all" ? 200 : 206);
  if (body.headOnly || body.head !== undefined) {
    response.end(body.headOnly ? undefined : body.head?.subarray(span.from, span.to + 1));
    return;
  }
  await stream(response, body.file, span);
  response.end();
}

async function sendGzip(response: ServerResponse, body: Body): Promise<void> {
  response.setHeader("Content-Encoding", "gzip");
  response.writeHead(200);
  if (body.headOnly) {
    response.end();
    return;
  }
  const source = body.head === undefined ? chunks(body.file, { from: 0, to: body.size - 1 }) : [body.head];
  await pipeline(source, lateZlib().createGzip({ level: FASTEST_LEVEL, chunkSize: 64 * 1024 }), response);
}

/** Reads the whole of a small file, to its end: `size` is only a hint, because files in /proc report 0. */
async function readHead(file: FileHandle, size: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let position = 0;
  for (;;) {
    const buffer = Buffer.allocUnsafe(size > position ? size - position : 64 * 1024);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) break;
    pieces.push(buffer.subarray(0, bytesRead));
    position += bytesRead;
    if (position === size) break;
    if (position > LARGEST_HEAD_BYTES)
      throw new AppError(
        "bad_request",
        `the file is longer than it reports and does not end within ${LARGEST_HEAD_BYTES} bytes`,
      );
  }
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
}

// The next piece is read while the last one is sent.
async function stream(response: ServerResponse, file: FileHandle, span: Span): Promise<void> {
  for await (const chunk of chunks(file, span)) {
    if (response.destroyed) return;
    if (!response.write(chunk)) await room(response);
  }
}

/** Resolves when more can be written, or when writing is over. */
function room(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}

/** @throws {AppError} internal when the file has become shorter than what was promised */
async function* chunks(file: FileHandle, { from, to }: Span): AsyncGenerator<Buffer> {
  const read = async (position: number) => {
    const size = Math.min(CHUNK_BYTES, to + 1 - position);
    if (size <= 0) return undefined;
    const buffer = Buffer.allocUnsafeSlow(size);
    const { bytesRead } = await file.read(buffer, 0, size, position);
    if (bytesRead === 0) throw new AppError("internal", "the file became shorter while it was sent");
    return buffer.subarray(0, bytesRead);
  };
  let position = from;
  let next = read(position);
  try {
    for (let chunk = await next; chunk !== undefined; chunk = await next) {
      position += chunk.length;
      next = read(position);
      yield chunk;
    }
  } finally {
    // The caller closes the file now: nothing may still read from it.
    await next.catch(() => undefined);
  }
}

function header(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
