/**
 * Stores archives of COPY steps on disk: `<directory>/<template id>/<hash>`. A file of that name is whole and durable;
 * an upload under way has a temporary name, so two uploads of one hash do not collide. The content is not trusted, and
 * nothing beyond its first block is read.
 */

import { randomUUID } from "node:crypto";
import { createReadStream, type ReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../../shared/http/errors.ts";
import { archiveKind, HEAD_BYTES } from "./archive-head.ts";

export interface StoredArchive {
  readonly templateId: string;
  readonly hash: string;
  readonly bytes: number;
  /** Time of the upload or of a client's last request for it, unix milliseconds. */
  readonly usedAt: number;
}

export interface Archives {
  has(templateId: string, hash: string): Promise<boolean>;
  /** As `has`, and marks the archive as used, so that cleanup keeps it until the build that names it starts. */
  touch(templateId: string, hash: string): Promise<boolean>;
  /** Resolves when the archive is durable. @throws {AppError} bad_request: not `length` bytes, or not a tar archive */
  store(upload: Upload): Promise<void>;
  /** Undefined: there is no such archive. */
  read(templateId: string, hash: string): Promise<{ readonly bytes: number; readonly stream: ReadStream } | undefined>;
  list(): Promise<StoredArchive[]>;
  remove(templateId: string, hash: string): Promise<void>;
  removeTemplate(templateId: string): Promise<void>;
  /** Removes the files of interrupted uploads that are older than `before`. */
  sweepUnfinished(before: number): Promise<void>;
}

interface Upload {
  readonly templateId: string;
  readonly hash: string;
  readonly length: number;
  readonly content: AsyncIterable<Buffer>;
}

const HASH = /^[0-9a-f]{64}$/;
const TEMPLATE = /^[a-z0-9]{1,64}$/;
const UNFINISHED = ".upload-";

export function createArchives(directory: string): Archives {
  // A second check before the values become a path: both come from validated routes and rows.
  function folder(templateId: string): string {
    if (!TEMPLATE.test(templateId))
      throw new AppError("bad_request", `'${templateId.slice(0, 64)}' is not a template id`);
    return join(directory, templateId);
  }
  function path(templateId: string, hash: string): string {
    if (!HASH.test(hash)) throw new AppError("bad_request", `'${hash.slice(0, 64)}' is not a hash of files`);
    return join(folder(templateId), hash);
  }

  async function write(upload: Upload, draft: string): Promise<void> {
    const file = await open(draft, "wx+", 0o600);
    try {
      await fill(file, upload);
      await checkHead(file);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  const archives: Archives = {
    async has(templateId, hash) {
      return (await size(path(templateId, hash))) !== undefined;
    },

    async touch(templateId, hash) {
      try {
        await utimes(path(templateId, hash), new Date(), new Date());
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    },

    async store(upload) {
      const final = path(upload.templateId, upload.hash);
      const home = folder(upload.templateId);
      await mkdir(home, { recursive: true, mode: 0o700 });
      const draft = join(home, `${UNFINISHED}${randomUUID()}`);
      try {
        await write(upload, draft);
        await rename(draft, final);
        await syncFolder(home);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },

    async read(templateId, hash) {
      const at = path(templateId, hash);
      let file: FileHandle;
      try {
        file = await open(at, "r");
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
      // Reads the open file: its name may belong to another upload a moment later.
      const { size: bytes } = await file.stat();
      return { bytes, stream: createReadStream(at, { fd: file, start: 0 }) };
    },

    async list() {
      const found: StoredArchive[] = [];
      for (const templateId of await names(directory)) {
        if (!TEMPLATE.test(templateId)) continue;
        for (const hash of await names(join(directory, templateId))) {
          if (!HASH.test(hash)) continue;
          const facts = await unlessMissing(stat(join(directory, templateId, hash)));
          if (facts !== undefined) found.push({ templateId, hash, bytes: facts.size, usedAt: facts.mtimeMs });
        }
      }
      return found;
    },

    remove: (templateId, hash) => rm(path(templateId, hash), { force: true }),
    removeTemplate: (templateId) => rm(folder(templateId), { recursive: true, force: true }),

    async sweepUnfinished(before) {
      for (const templateId of await names(directory)) {
        if (!TEMPLATE.test(templateId)) continue;
        for (const name of await names(join(directory, templateId))) {
          if (!name.startsWith(UNFINISHED)) continue;
          const at = join(directory, templateId, name);
          const facts = await unlessMissing(stat(at));
          if (facts !== undefined && facts.mtimeMs <= before) await rm(at, { force: true });
        }
      }
    },
  };
  return archives;
}

async function fill(file: FileHandle, { length, content }: Upload): Promise<void> {
  let written = 0;
  for await (const chunk of content) {
    written += chunk.length;
    if (written > length) break;
    await file.appendFile(chunk);
  }
  if (written !== length) {
    throw new AppError("bad_request", `the upload has another length than the ${length} bytes it announced`);
  }
}

async function checkHead(file: FileHandle): Promise<void> {
  const head = Buffer.alloc(HEAD_BYTES);
  const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0);
  if (archiveKind(head.subarray(0, bytesRead)) === undefined) {
    throw new AppError("bad_request", "the upload is not a tar archive, neither plain nor compressed with gzip");
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function size(path: string): Promise<number | undefined> {
  return (await unlessMissing(stat(path)))?.size;
}

async function names(path: string): Promise<string[]> {
  return (await unlessMissing(readdir(path))) ?? [];
}

async function unlessMissing<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
