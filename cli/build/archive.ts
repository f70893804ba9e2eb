/** The archive of a COPY step: the files of the build's folder that its source names, without those of .dockerignore. */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { lstat, readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Pack, pack } from "tar-stream";
import { IgnoreError, type Ignores, ignoredBy } from "../../shared/dockerfile/ignored.ts";
import { isNamed, mayHold, needsDirectory, readSource, SourceError, sentAs } from "../../shared/dockerfile/sources.ts";
import { usage } from "../failure.ts";

export interface Found {
  /** In the archive, with `/` between names. */
  readonly path: string;
  /** From the folder on. */
  readonly place: string;
  readonly kind: "file" | "directory" | "symlink";
  readonly mode: number;
  readonly mtime: Date;
  readonly size: number;
  readonly target: string;
}

/** What a source means. */
interface Picked {
  readonly files: readonly Found[];
  /** A source with a wildcard may mean nothing; any other is refused then. */
  readonly isWild: boolean;
  readonly needsDirectory: boolean;
}

/** What the folder's `.dockerignore` leaves out. As in Docker, a file beside the Dockerfile that has its name before counts alone. */
export async function readIgnored(folder: string, dockerfile: string): Promise<Ignores> {
  const text = (await textAt(`${dockerfile}.dockerignore`)) ?? (await textAt(join(folder, ".dockerignore"))) ?? "";
  return read(() => ignoredBy(text));
}

/** Undefined: there is no such file. One that cannot be read may name what must not be sent. */
function textAt(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw usage(`cannot read ${path}: ${(cause as Error).message}`);
  });
}

/** The files that a source means, which may have wildcards. A link that the source names is followed, others are copied. */
export async function filesOf(folder: string, source: string, isIgnored: Ignores): Promise<Picked> {
  const wanted = read(() => readSource(source));
  const isWild = wanted.patterns.length > 0;
  const found = new Map<string, Found>();
  const paths: string[] = [];
  const add = (path: string, one: Omit<Found, "path">) => {
    const name = sentAs(path, one.kind === "directory", wanted);
    if (name === undefined) return;
    // Of two matches with a file of one name, Docker keeps the later.
    if (name !== "") found.set(name, { ...one, path: name });
    paths.push(path);
  };
  async function look(path: string, named: string): Promise<void> {
    if (!mayHold(path, wanted)) return;
    const isOfSource = path === wanted.start || isNamed(path, wanted);
    const place = isOfSource ? await followed(folder, named, source) : named;
    // The folder itself may be a link.
    const info = await (place === "" ? stat : lstat)(join(folder, place)).catch(() => {
      const why = place.includes("\uFFFD") ? "has a name that is not UTF-8" : `is not in ${folder}`;
      throw usage(`COPY ${source}: ${place} ${why}`);
    });
    const about = { place, mode: info.mode & 0o7777, mtime: info.mtime, size: 0, target: "" };
    if (info.isDirectory()) {
      const isKept = place === "" || !isIgnored(`${place}/`);
      if (isKept) add(path, { ...about, kind: "directory" });
      // `.dockerignore` may leave out a directory and keep a file in it. A directory that this user cannot read gives no file.
      const names = await readdir(join(folder, place)).catch((cause: unknown): string[] => {
        if (isKept) throw unreadable(place, source, cause);
        return [];
      });
      for (const name of names.toSorted()) await look(below(path, name), below(place, name));
    } else if (isIgnored(place)) {
      // Left out, as the folder's owner wants it.
    } else if (info.isFile()) add(path, { ...about, kind: "file", size: info.size });
    else if (info.isSymbolicLink())
      add(path, { ...about, kind: "symlink", target: await readlink(join(folder, place)) });
  }
  await look(wanted.start, wanted.start);
  const files = [...found.values()];
  if (files.length === 0 && !isWild && wanted.start !== "")
    throw usage(`COPY ${source}: .dockerignore leaves nothing of it`);
  return { files, isWild, needsDirectory: needsDirectory(paths, wanted) };
}

function read<T>(reading: () => T): T {
  try {
    return reading();
  } catch (error) {
    throw error instanceof SourceError || error instanceof IgnoreError ? usage(error.message) : error;
  }
}

/** Where the place is, with the links on the way and its own followed; the place itself where nothing is there. */
async function followed(folder: string, place: string, source: string): Promise<string> {
  const info = await lstat(join(folder, place)).catch(() => undefined);
  if (place === "" || info === undefined) return place;
  const end = await realpath(join(folder, place)).catch(() => {
    throw usage(`COPY ${source}: ${place} is a link to nothing`);
  });
  const inside = relative(await realpath(folder), end);
  if (inside === ".." || inside.startsWith("../") || isAbsolute(inside))
    throw usage(`COPY ${source}: ${place} is a link that leaves the folder, or is below one`);
  return inside;
}

function unreadable(place: string, source: string, cause: unknown): Error {
  const { code = "" } = cause as NodeJS.ErrnoException;
  return usage(
    `COPY ${source}: ${place === "" ? "the folder" : place} cannot be read (${code}): .dockerignore can leave it out`,
  );
}

function below(path: string, name: string): string {
  return path === "" ? name : `${path}/${name}`;
}

/** The same files have the same hash, so that the platform is sent each once. As in Docker, their times are not looked at. */
export async function hashOf(folder: string, source: string, files: readonly Found[]): Promise<string> {
  const hash = createHash("sha256");
  hash.update(`${source}\0`);
  for (const { path, place, kind, mode, size, target } of files) {
    hash.update(`${JSON.stringify([path, kind, mode, size, target])}\n`);
    if (kind === "file") for await (const chunk of contentOf(folder, { place, size }, source)) hash.update(chunk);
  }
  return hash.digest("hex");
}

/** As many bytes as the file had: a log may grow meanwhile, and its archive must fit what its header says. */
async function* contentOf(
  folder: string,
  { place, size }: Pick<Found, "place" | "size">,
  source: string,
): AsyncGenerator<Buffer, void, undefined> {
  if (size === 0) return;
  let left = size;
  try {
    for await (const chunk of createReadStream(join(folder, place), { end: size - 1 })) {
      left -= (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  } catch (cause) {
    throw unreadable(place, source, cause);
  }
  if (left > 0)
    throw usage(
      `COPY ${source}: ${place} became shorter while it was read: build again, or leave it out in .dockerignore`,
    );
}

/** Writes the archive of the source to a file. */
export async function writeArchive(
  folder: string,
  files: readonly Found[],
  { source, to }: { readonly source: string; readonly to: string },
): Promise<void> {
  const archive = pack();
  const filling = fill(archive, folder, { source, files }).catch((error: unknown) => archive.destroy(error as Error));
  await pipeline(archive, createGzip(), createWriteStream(to, { mode: 0o600 }));
  await filling;
}

async function fill(
  archive: Pack,
  folder: string,
  { source, files }: { readonly source: string; readonly files: readonly Found[] },
): Promise<void> {
  for (const { path, place, kind, mode, mtime, size, target } of files) {
    const header = { name: path, mode, type: kind, mtime };
    if (kind === "file") {
      const entry = archive.entry({ ...header, size });
      await pipeline(contentOf(folder, { place, size }, source), entry);
    } else {
      await new Promise<void>((resolve, reject) => {
        archive.entry({ ...header, ...(kind === "symlink" ? { linkname: target } : {}) }, (error) =>
          error instanceof Error ? reject(error) : resolve(),
        );
      });
    }
  }
  archive.finalize();
}
