/** POST /files/compose: concatenates files to one file, all at once, and then removes the sources. */

import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { readJson } from "../bodies/body.ts";
import { sendJson, untilClosed } from "../bodies/reply.ts";
import { openFollowed } from "../filesystem/followed.ts";
import { refuseForeign } from "../filesystem/place.ts";
import { makeDirectories } from "../filesystem/tree.ts";
import type { Session } from "../init/session.ts";
import { randomName } from "../runtime/late-builtins.ts";
import { open, rename, stat, unlink } from "../system/disk.ts";
import { errnoOf, naming } from "../system/errno.ts";
import type { User } from "../system/users.ts";
import { restUser } from "./upload.ts";

const LARGEST_BODY_BYTES = 4 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

interface Composition {
  readonly sources: readonly string[];
  readonly destination: string;
  readonly user: User;
  readonly signal: AbortSignal;
}

/** @throws {AppError} bad_request, unauthorized, not_found, no_space; then neither sources nor destination have changed */
export async function composeFiles(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  session: Session,
): Promise<void> {
  const body = await readJson(request, LARGEST_BODY_BYTES);
  const composition = { ...read(body, query, session), signal: untilClosed(response) };
  for (const source of composition.sources) await checkSource(source);
  const { destination } = composition;
  await compose(composition).catch(naming(destination));
  for (const source of new Set(composition.sources)) await removeFile(source).catch(naming(source));
  sendJson(response, 200, { name: posix.basename(destination), path: destination, type: "file" });
}

function read(body: Record<string, unknown>, query: URLSearchParams, session: Session): Omit<Composition, "signal"> {
  const { source_paths: sources, destination, username } = body;
  if (
    !Array.isArray(sources) ||
    sources.length === 0 ||
    !sources.every((path) => typeof path === "string" && path !== "")
  )
    throw new AppError("bad_request", "source_paths must be a list of paths with at least one entry");
  if (typeof destination !== "string" || destination === "")
    throw new AppError("bad_request", "destination is required");
  if (username !== undefined && username !== null && typeof username !== "string")
    throw new AppError("bad_request", "username must be a text");
  const named = new URLSearchParams(query);
  if (typeof username === "string") named.set("username", username);
  const user = restUser(session, named);
  const target = session.path(destination, user);
  const paths = sources.map((path: string) => session.path(path, user));
  if (paths.includes(target)) throw new AppError("bad_request", "destination is one of the sources");
  return { sources: paths, destination: target, user };
}

async function checkSource(path: string): Promise<void> {
  const file = await openFollowed(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(naming(path));
  try {
    if (!(await file.stat()).isFile()) throw new AppError("bad_request", `path '${path}' is not a regular file`);
  } finally {
    await file.close();
  }
}

async function compose({ sources, destination, user, signal }: Composition): Promise<void> {
  await makeDirectories(posix.dirname(destination), user, signal);
  if ((await stat(destination).catch(() => undefined))?.isDirectory() === true)
    throw new AppError("bad_request", `path is a directory: '${destination}'`);
  const beside = posix.join(posix.dirname(destination), `.svc-${randomName(8)}`);
  try {
    const out = await open(beside, "wx", 0o644);
    try {
      await refuseForeign(out, beside, "create");
      for (const source of sources) await append(source, out, signal).catch(naming(source));
      await out.chown(user.uid, user.gid);
    } finally {
      await out.close();
    }
    await rename(beside, destination);
  } catch (error) {
    await removeFile(beside);
    throw error;
  }
}

/** Succeeds when it is gone already. */
async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (errnoOf(error) !== "ENOENT") throw error;
  });
}

async function append(source: string, out: FileHandle, signal: AbortSignal): Promise<void> {
  const file = await openFollowed(source, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await refuseForeign(file, source, "read");
    const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return;
      await out.appendFile(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}
