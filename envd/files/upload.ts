/** POST /files: one file as raw bytes, or many as multipart/form-data. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import type { Pieces } from "../bodies/arriving.ts";
import { decodedBody } from "../bodies/body.ts";
import { sendJson, untilClosed } from "../bodies/reply.ts";
import type { Session } from "../init/session.ts";
import { writtenBy } from "../system/file-names.ts";
import type { Attributes, System } from "../system/system.ts";
import type { User } from "../system/users.ts";
import { metadataOf } from "./metadata-headers.ts";
import { boundaryOf, type Part, readParts } from "./multipart.ts";
import { writeFileFrom } from "./write-file.ts";

export interface FilesDeps {
  readonly session: Session;
  readonly system: System;
}

/** Most files of one request. */
const MOST_FILES = 10_000;
/** PATH_MAX of Linux, with the zero byte at its end. */
const LONGEST_PATH_BYTES = 4_095;

interface WrittenFile {
  readonly name: string;
  readonly path: string;
  readonly type: "file";
  readonly metadata?: Attributes;
}

interface Written {
  readonly file: WrittenFile;
  /** Of the file as it was written. */
  readonly etag: string;
}

interface Upload {
  readonly path: string | undefined;
  readonly user: User;
  readonly metadata: Attributes;
  readonly signal: AbortSignal;
  /** The entity tags of If-Match: the file is replaced only while it has one of them. */
  readonly ifMatch: string | undefined;
}

/** @throws {AppError} bad_request, unauthorized, no_space, precondition_failed; files before the failing one stay */
export async function uploadFiles(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  deps: FilesDeps,
): Promise<void> {
  const user = restUser(deps.session, query);
  const metadata = metadataOf(request.rawHeaders);
  const path = query.get("path") ?? undefined;
  const ifMatch = request.headers["if-match"];
  if (ifMatch !== undefined && (path ?? "") === "")
    throw new AppError("bad_request", "If-Match is about one file: name it in the query field 'path'");
  const upload = { path, user, metadata, signal: untilClosed(response), ifMatch };
  const contentType = request.headers["content-type"] ?? "";
  const [mediaType] = contentType.split(";", 1);
  let written: Written[];
  switch (mediaType?.trim().toLowerCase()) {
    case "application/octet-stream":
      written = [await uploadOne(decodedBody(request), upload, deps)];
      break;
    case "multipart/form-data":
      written = await uploadParts(decodedBody(request), boundaryOf(contentType), upload, deps);
      break;
    default:
      throw new AppError(
        "bad_request",
        `unsupported content type '${contentType.slice(0, 80)}': multipart/form-data or application/octet-stream`,
      );
  }
  request.resume();
  // Only for clients that ask: answers to others are those of the wire contract.
  if (ifMatch !== undefined && written[0]?.etag !== undefined) response.setHeader("ETag", written[0].etag);
  sendJson(
    response,
    200,
    written.map(({ file }) => file),
  );
}

/** The user of `?username=`, worded for REST. @throws {AppError} unauthorized */
export function restUser(session: Session, query: URLSearchParams): User {
  const name = query.get("username") ?? undefined;
  try {
    return session.user(name);
  } catch (error) {
    throw new AppError(
      "unauthorized",
      `error looking up user '${(name ?? "").slice(0, 100)}': ${AppError.from(error).message}`,
      { cause: error },
    );
  }
}

async function uploadOne(
  body: AsyncIterable<Pieces>,
  { path, user, metadata, signal, ifMatch }: Upload,
  { session, system }: FilesDeps,
): Promise<Written> {
  if (path === undefined || path === "") throw new AppError("bad_request", "path is required");
  const target = session.path(path, user);
  const { etag } = await writeFileFrom(body, { path: target, owner: user, metadata, signal, ifMatch }, system);
  return { file: writtenFile(target, metadata), etag };
}

async function uploadParts(
  body: AsyncIterable<Pieces>,
  boundary: string,
  upload: Upload,
  deps: FilesDeps,
): Promise<Written[]> {
  const written = new Map<string, Written>();
  let otherPart: string | undefined;
  let { path: named = "" } = upload;
  const inQuery = named !== "";
  for await (const part of readParts(body, boundary)) {
    if (part.name !== "file") {
      otherPart ??= part.name ?? "";
      // Some clients write the path where forms have it. Beside one in the query it is ignored, as every other field.
      if (!inQuery && isPathField(part)) {
        const field = await textOf(part.body);
        if (named === "") refuseLatePath(field, written, (path) => deps.session.path(path, upload.user));
        named = field;
      }
      continue;
    }
    const path = named === "" ? part.filename : named;
    if (path === undefined || path === "")
      throw new AppError("bad_request", "a file has neither a path nor a file name");
    const target = deps.session.path(path, upload.user);
    if (written.has(target)) throw new AppError("bad_request", `path '${target}' is given twice`);
    if (written.size >= MOST_FILES) throw new AppError("bad_request", `more than ${MOST_FILES} files in one request`);
    written.set(target, await uploadOne(part.body, { ...upload, path }, deps));
  }
  if (written.size === 0 && otherPart !== undefined) throw noFile(otherPart);
  return [...written.values()];
}

/** A part with a file name is a file, whatever it is called. */
function isPathField({ name, filename }: Part): boolean {
  return name === "path" && filename === undefined;
}

function noFile(otherPart: string): AppError {
  return new AppError(
    "bad_request",
    `no file was written: the form has no part 'file', but '${otherPart.slice(0, 100)}': name each file's part 'file'`,
  );
}

/** The path in a field of a form. @throws {AppError} bad_request where no path is so long */
async function textOf(body: AsyncIterable<Pieces>): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const some of body) {
    for (const piece of some) size += piece.length;
    if (size > LONGEST_PATH_BYTES)
      throw new AppError("bad_request", `the form's field 'path' is longer than ${LONGEST_PATH_BYTES} bytes`);
    pieces.push(...some);
  }
  return writtenBy(Buffer.concat(pieces));
}

/** @throws {AppError} bad_request where the form's path comes behind a file, which was written elsewhere */
function refuseLatePath(field: string, written: ReadonlyMap<string, Written>, resolve: (path: string) => string): void {
  if (field === "") return;
  const target = resolve(field);
  const elsewhere = [...written.keys()].find((path) => path !== target);
  if (elsewhere !== undefined)
    throw new AppError(
      "bad_request",
      `the form names the path '${target}' behind its file, which was written as '${elsewhere}': put the field 'path' ` +
        "before the file, or into the query",
    );
}

function writtenFile(path: string, metadata: Attributes): WrittenFile {
  const file = { name: posix.basename(path), path, type: "file" as const };
  return Object.keys(metadata).length === 0 ? file : { ...file, metadata };
}
