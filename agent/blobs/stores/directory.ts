/**
 * A store in a directory: a disk of this machine, or a file system that machines share. An object is written under another name,
 * flushed, renamed, and the directory is flushed: killed at any line, a writer leaves all of an object or a draft in `new/`.
 *
 * The directory must exist. It is never made, because where a share is not mounted its mount point would be filled instead.
 */

import { randomUUID } from "node:crypto";
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { withDeadline } from "../../../shared/program/deadline.ts";
import { sync } from "../../host/sync.ts";
import { BlobError, codeOf } from "../content/blob-error.ts";
import { type BlobStore, checkKey, type StoredBlob } from "./store.ts";

const DRAFTS = "new";
const PAGE = 1_000;
const STATS_AT_ONCE = 16;
/** Digits of an id that are a directory: 256 directories, so that none is too long to be read. */
const SPREAD = 2;
const SPREAD_KEY = /^(sha256)\/([0-9a-f]{2})(.*)$/;
/** A share whose server is gone answers never. */
const LIMIT_MS = 120_000;

/** @param limitMs time limit of each operation */
export function directoryStore(directory: string, limitMs = LIMIT_MS): BlobStore {
  const root = resolve(directory);
  const name = `the store ${root}`;
  const place = (key: string) => {
    checkKey(key);
    const [, folder, first, rest] = SPREAD_KEY.exec(key) ?? [];
    return folder === undefined || first === undefined ? join(root, key) : join(root, folder, first, first + rest);
  };

  const guarded = async <T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    const late = () => {
      throw new BlobError("unreachable", `${name} did not ${what} within ${limitMs / 1_000} s`);
    };
    try {
      return await withDeadline(work(), limitMs, late);
    } catch (error) {
      throw error instanceof BlobError ? error : faultOf(name, what, error);
    }
  };

  /** Makes the directories below the root, durably. */
  const folders = async (directory: string): Promise<void> => {
    try {
      await mkdir(directory, { mode: 0o700 });
    } catch (error) {
      if (codeOf(error) === "EEXIST") return;
      if (codeOf(error) !== "ENOENT" || directory === root || dirname(directory) === root) throw error;
      await folders(dirname(directory));
      await folders(directory);
      return;
    }
    await sync(dirname(directory));
  };

  const write = async (path: string, bytes: Uint8Array): Promise<void> => {
    await folders(join(root, DRAFTS));
    const draft = join(root, DRAFTS, randomUUID());
    try {
      const file = await open(draft, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await folders(dirname(path));
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => undefined);
      throw error;
    }
    await sync(dirname(path));
  };

  return {
    name,

    put(key, bytes, signal, replace = false) {
      const path = place(key);
      return guarded(`store ${key}`, signal, async () => {
        if (replace || (await sizeOf(path)) === undefined) {
          await write(path, bytes);
          return "stored";
        }
        // Its writer may not have flushed the directory yet.
        await sync(dirname(path));
        return "present";
      });
    },

    get(key, signal, range) {
      const path = place(key);
      return guarded(`give ${key}`, signal, async () => {
        const file = await open(path, "r").catch(async (error: unknown) => {
          if (codeOf(error) !== "ENOENT") throw error;
          await readdir(root);
          throw new BlobError("missing", `${name} does not have ${key}`);
        });
        try {
          if (range === undefined) return await file.readFile();
          const { size } = await file.stat();
          const length = Math.max(0, Math.min(range.length, size - range.from));
          const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, range.from);
          return buffer.subarray(0, bytesRead);
        } finally {
          await file.close();
        }
      });
    },

    size(key, signal) {
      const path = place(key);
      return guarded(`look for ${key}`, signal, async () => {
        const bytes = await sizeOf(path);
        // Without its root the store is away, and nothing is known to be missing.
        if (bytes === undefined) await lstat(root);
        return bytes;
      });
    },

    delete(key, signal) {
      const path = place(key);
      return guarded(`delete ${key}`, signal, async () => {
        await lstat(root);
        await rm(path, { force: true });
      });
    },

    list(prefix, after, signal) {
      return guarded(`list ${prefix}`, signal, async () => {
        await lstat(root);
        const keys: string[] = [];
        for (const directory of await foldersBelow(root, prefix, after)) {
          const inside = (await names(join(root, "sha256", directory))).map((name) => `sha256/${name}`);
          keys.push(...inside.filter((key) => key.startsWith(prefix) && key > after));
          if (keys.length > PAGE) break;
        }
        const page = keys.slice(0, PAGE);
        return { found: await sizes(page, place), next: keys.length > PAGE ? page.at(-1) : undefined };
      });
    },

    tidy(before, signal) {
      return guarded("remove drafts", signal, async () => {
        let removed = 0;
        for (const draft of await names(join(root, DRAFTS))) {
          const path = join(root, DRAFTS, draft);
          const found = await lstat(path).catch(() => undefined);
          if (found === undefined || found.mtimeMs >= before) continue;
          await rm(path, { force: true });
          removed++;
        }
        return removed;
      });
    },
  };
}

async function foldersBelow(root: string, prefix: string, after: string): Promise<string[]> {
  const found = await names(join(root, "sha256"));
  return found.filter((first) => {
    const own = `sha256/${first}`;
    return first.length === SPREAD && (own.startsWith(prefix) || prefix.startsWith(own)) && `${own}~` > after;
  });
}

/** Sizes of those that are still there. */
async function sizes(keys: readonly string[], place: (key: string) => string): Promise<StoredBlob[]> {
  const found: (StoredBlob | undefined)[] = [];
  const next = keys.entries();
  const worker = async () => {
    for (const [index, key] of next) {
      const bytes = await sizeOf(place(key));
      found[index] = bytes === undefined ? undefined : { key, bytes };
    }
  };
  await Promise.all(Array.from({ length: STATS_AT_ONCE }, worker));
  return found.filter((each) => each !== undefined);
}

/** Sorted by code unit, as keys are compared. A directory that is not there has none. */
async function names(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await lstat(path)).size;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function faultOf(name: string, what: string, error: unknown): BlobError {
  const code = codeOf(error) ?? String(error);
  const cause = { cause: error };
  if (/^(ENOSPC|EDQUOT)$/.test(code))
    return new BlobError("full", `${name} is full (${code}): it cannot ${what}`, cause);
  if (/^(EACCES|EPERM|EROFS)$/.test(code)) return new BlobError("denied", `${name} may not ${what} (${code})`, cause);
  if (code === "ENOENT")
    return new BlobError("unreachable", `${name} is not there: is its file system mounted? (it cannot ${what})`, cause);
  return new BlobError("unreachable", `${name} cannot ${what} (${code})`, cause);
}
