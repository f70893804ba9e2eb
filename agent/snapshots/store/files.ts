/**
 * Snapshots on the disk, and the check of their content: `<id>/manifest.json` and `<id>/images/`. Written under another name,
 * made durable, then renamed: a directory with its final name is complete.
 */

import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../../shared/http/errors.ts";
import { bootId } from "../../../shared/machine-id.ts";
import { sync } from "../../host/sync.ts";
import { followHashes, sha256 } from "./hashes.ts";
import { checkSizes, corrupt, type Manifest, missing, parseManifest, type StoredFile } from "./manifest.ts";
import { checkUnhashed, isUntouched, unhashedFiles } from "./unhashed.ts";

const SYNCS_AT_ONCE = 8;
const MANIFEST = "manifest.json";
const UNFINISHED = ".new";
/** See scripts/host/criu/criu-links.c. */
const LINKS = "link-remaps";

interface Draft {
  /** Directory of CRIU's images, and directory of its logs. */
  readonly images: string;
  readonly work: string;
  /** The caller has written all files. Resolves when the snapshot has its final name, and is durable if it was to be. */
  finish(manifest: (files: readonly StoredFile[]) => Manifest): Promise<Manifest>;
  /** Removes the draft. */
  discard(): Promise<void>;
}

interface CheckedFile {
  readonly name: string;
  /** As the manifest has it. */
  readonly size: number;
  /** Undefined: it is whole. */
  readonly fault: string | undefined;
  readonly missing: boolean;
}

export interface SnapshotFiles {
  /** @param durable false: it lives for one call, so nothing of it is hashed or flushed to the disk */
  draft(id: string, durable: boolean): Promise<Draft>;
  /** Directory of a stored snapshot. */
  directory(id: string): string;
  /** Directory of a stored snapshot's images. */
  images(id: string): string;
  /** @throws {AppError} snapshot_files_missing, snapshot_corrupt, snapshot_incompatible */
  manifest(id: string): Promise<Manifest>;
  /** Whether the file system reports that no file changed since it was written. */
  untouched(id: string, manifest: Manifest): Promise<boolean>;
  /**
   * Of a snapshot that was written here file by file, each verified: its manifest, which has the times of another machine, gets those of
   * this one, so that its files count as untouched. An image without hashes keeps its times, which are all that vouches for it.
   * @throws {AppError} as `manifest`; an Error of the file system. The manifest is whole then, as it was
   */
  keepTimes(id: string): Promise<void>;
  /** Reads all content, where it has hashes. @throws {AppError} snapshot_files_missing, snapshot_corrupt */
  verify(id: string, manifest: Manifest, signal: AbortSignal): Promise<void>;
  /** Reads all content, and goes on where a file is not whole. @param read called with the number of bytes that were read */
  check(id: string, manifest: Manifest, signal: AbortSignal, read: (bytes: number) => void): Promise<CheckedFile[]>;
  /** The names that the dump has given to open files, each ended by a zero; also of an unfinished snapshot. */
  links(id: string): Promise<Uint8Array | undefined>;
  /** Also removes an unfinished draft. An unknown id counts as success. */
  remove(id: string): Promise<void>;
  /** Snapshots with their final name, and unfinished drafts. */
  list(): Promise<{ stored: string[]; unfinished: string[] }>;
  /** Unix milliseconds. */
  changedAt(id: string): Promise<number>;
  /** Directory of a draft. */
  draftDirectory(id: string): string;
}

export function snapshotFiles(root: string): SnapshotFiles {
  const final = (id: string) => join(root, id);
  const temporary = (id: string) => join(root, `.${id}${UNFINISHED}`);
  const manifestOf = async (id: string): Promise<Manifest> => {
    let text: string;
    try {
      text = await readFile(join(final(id), MANIFEST), "utf8");
    } catch (cause) {
      if (isMissing(cause)) throw missing("its manifest is gone");
      throw corrupt("its manifest cannot be read", cause);
    }
    return parseManifest(text, id);
  };

  return {
    async draft(id, durable) {
      const directory = temporary(id);
      await rm(directory, { recursive: true, force: true });
      const images = join(directory, "images");
      const work = join(directory, "work");
      await mkdir(images, { recursive: true, mode: 0o700 });
      await mkdir(work, { mode: 0o700 });
      const hashes = durable ? followHashes(images) : undefined;
      return {
        images,
        work,
        async finish(toManifest) {
          const synced = durable ? syncAll(images) : Promise.resolve();
          synced.catch(() => undefined);
          const describe = async () => {
            const manifest =
              hashes === undefined
                ? { ...toManifest(await unhashedFiles(images)), boot: bootId() }
                : toManifest(await hashes.finish());
            await writeFile(join(directory, MANIFEST), toText(manifest), { mode: 0o600, flush: durable });
            return manifest;
          };
          // The final name alone says that all of this is on the disk, so the parts need not wait for each other.
          const manifest = await besides(describe(), [synced, leaveWork(work, directory)]);
          await chmod(images, 0o700);
          if (durable) await sync(directory);
          await rm(final(id), { recursive: true, force: true });
          await rename(directory, final(id));
          if (durable) await sync(root);
          return manifest;
        },
        async discard() {
          hashes?.stop();
          await rm(directory, { recursive: true, force: true });
          await rm(final(id), { recursive: true, force: true });
        },
      };
    },

    directory: final,
    images: (id) => join(final(id), "images"),

    manifest: manifestOf,

    untouched: (id, manifest) => isUntouched(join(final(id), "images"), manifest),

    async keepTimes(id) {
      const manifest = await manifestOf(id);
      const images = join(final(id), "images");
      if (manifest.boot !== undefined || (await isUntouched(images, manifest))) return;
      const files = await Promise.all(
        manifest.files.map(async (file) => ({ ...file, changedAt: (await stat(join(images, file.name))).ctimeMs })),
      );
      const path = join(final(id), MANIFEST);
      await replace(path, toText({ ...manifest, files }));
    },

    async verify(id, manifest, signal) {
      const directory = join(final(id), "images");
      checkSizes(manifest, await sizesIn(directory));
      if (manifest.boot !== undefined) return checkUnhashed(directory, manifest);
      for (const { name, sha256: expected } of manifest.files) {
        const found = await sha256(join(directory, name), signal);
        if (found !== expected) throw corrupt(`the content of ${name} has changed since it was written`);
      }
    },

    async check(id, manifest, signal, read) {
      const checked: CheckedFile[] = [];
      for (const file of manifest.files) {
        const { name, size } = file;
        const outcome = await checkFile(join(final(id), "images", name), file, { signal, read });
        checked.push({ name, size, ...outcome });
      }
      return checked;
    },

    async links(id) {
      for (const directory of [final(id), temporary(id), join(temporary(id), "work")]) {
        const names = await readFile(join(directory, LINKS)).catch(unlessMissing);
        if (names !== undefined) return names;
      }
      return undefined;
    },

    async remove(id) {
      await rm(temporary(id), { recursive: true, force: true });
      await rm(final(id), { recursive: true, force: true });
    },

    changedAt: async (id) => (await stat(final(id)).catch(() => undefined))?.mtimeMs ?? Date.now(),

    draftDirectory: temporary,

    async list() {
      const names = await readdir(root).catch(() => [] as string[]);
      return {
        stored: names.filter((name) => !name.startsWith(".")),
        unfinished: names
          .filter((name) => name.startsWith(".") && name.endsWith(UNFINISHED))
          .map((name) => name.slice(1, -UNFINISHED.length)),
      };
    },
  };
}

function toText(manifest: Manifest): string {
  return JSON.stringify(manifest, undefined, 1);
}

/** After a crash the file is there with its old content or with its new one. */
async function replace(path: string, text: string): Promise<void> {
  const draft = `${path}${UNFINISHED}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flush: true });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** ENOSPC and EDQUOT from any source become an error that the caller can name. */
export function noSpace(error: unknown): AppError | undefined {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  if (code !== "ENOSPC" && code !== "EDQUOT") return undefined;
  return new AppError("no_space", "the node has no space left for the snapshot", { cause: error });
}

async function checkFile(
  path: string,
  { size, sha256: expected }: StoredFile,
  { signal, read }: { readonly signal: AbortSignal; readonly read: (bytes: number) => void },
): Promise<Pick<CheckedFile, "fault" | "missing">> {
  try {
    const found = await stat(path);
    if (found.size !== size) return { fault: `it has ${found.size} bytes`, missing: false };
    let before = 0;
    const digest = await sha256(path, signal, (offset) => {
      read(offset - before);
      before = offset;
    });
    return { fault: digest === expected ? undefined : "its content has changed since it was written", missing: false };
  } catch (error) {
    signal.throwIfAborted();
    if (isMissing(error)) return { fault: "it is gone", missing: true };
    return { fault: `it cannot be read: ${error instanceof Error ? error.message : String(error)}`, missing: false };
  }
}

async function sizesIn(directory: string): Promise<Map<string, number>> {
  const names = await readdir(directory).catch(() => [] as string[]);
  const sizes = await Promise.all(names.map(async (name) => [name, (await stat(join(directory, name))).size] as const));
  return new Map(sizes);
}

/** Keeps the names that the dump has given to open files, and removes the logs. */
async function leaveWork(work: string, directory: string): Promise<void> {
  const kept = join(directory, LINKS);
  const moved = await rename(join(work, LINKS), kept).then(() => true, unlessMissing);
  if (moved === true) await sync(kept);
  await rm(work, { recursive: true });
}

/** Resolves to the work when the others have ended too. Rejects when all have: what follows a failure removes the files that they write. */
async function besides<T>(work: Promise<T>, others: readonly Promise<unknown>[]): Promise<T> {
  await Promise.allSettled([work, ...others]);
  await Promise.all(others);
  return work;
}

function unlessMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

async function syncAll(directory: string): Promise<void> {
  const names = await readdir(directory);
  const next = names.values();
  const worker = async () => {
    for (const name of next) await sync(join(directory, name));
  };
  await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, worker));
  await sync(directory);
}

function isMissing(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === "ENOENT";
}
