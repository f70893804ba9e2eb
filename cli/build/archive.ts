/** The archive of a COPY step: the files of the build's folder that its source names, without those of .dockerignore. */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Pack, pack } from "tar-stream";
import { type Ignores, ignoredBy } from "../../shared/dockerfile/ignored.ts";
import { usage } from "../failure.ts";

export interface Found {
  /** From the folder on, with `/` between names. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  readonly mode: number;
  readonly size: number;
  readonly target: string;
}

export async function readIgnored(folder: string): Promise<Ignores> {
  return ignoredBy(await readFile(join(folder, ".dockerignore"), "utf8").catch(() => ""));
}

/** The files of a source, which may have wildcards: the platform picks what they mean from those below the names before. */
export async function filesOf(folder: string, source: string, isIgnored: Ignores): Promise<readonly Found[]> {
  const parts = source.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw usage(`COPY ${source}: a source must not leave the folder`);
  const wildcard = parts.findIndex((part) => /[*?[\]]/.test(part));
  const start = (wildcard < 0 ? parts : parts.slice(0, wildcard)).join("/");
  const found: Found[] = [];
  async function look(path: string): Promise<void> {
    const info = await lstat(join(folder, path)).catch(() => {
      throw usage(`COPY ${source}: ${path} is not in ${folder}`);
    });
    const mode = info.mode & 0o777;
    if (info.isDirectory()) {
      if (path !== "" && !isIgnored(`${path}/`)) found.push({ path, kind: "directory", mode, size: 0, target: "" });
      for (const name of (await readdir(join(folder, path))).toSorted())
        await look(path === "" ? name : `${path}/${name}`);
    } else if (isIgnored(path)) {
      // Left out, as the folder's owner wants it.
    } else if (info.isFile()) found.push({ path, kind: "file", mode, size: info.size, target: "" });
    else if (info.isSymbolicLink()) {
      found.push({ path, kind: "symlink", mode, size: 0, target: await readlink(join(folder, path)) });
    }
  }
  await look(start);
  if (found.every(({ kind }) => kind === "directory") && wildcard < 0 && start !== "" && found.length === 0) {
    throw usage(`COPY ${source}: .dockerignore leaves nothing of it`);
  }
  return found;
}

/** The same files have the same hash, so that the platform is sent each once. */
export async function hashOf(folder: string, source: string, files: readonly Found[]): Promise<string> {
  const hash = createHash("sha256");
  hash.update(`${source}\0`);
  for (const { path, kind, mode, size, target } of files) {
    hash.update(`${JSON.stringify([path, kind, mode, size, target])}\n`);
    if (kind === "file") for await (const chunk of createReadStream(join(folder, path))) hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}

/** Writes the archive to a file. */
export async function writeArchive(folder: string, files: readonly Found[], to: string): Promise<void> {
  const archive = pack();
  const filling = fill(archive, folder, files).catch((error: unknown) => archive.destroy(error as Error));
  await pipeline(archive, createGzip(), createWriteStream(to, { mode: 0o600 }));
  await filling;
}

async function fill(archive: Pack, folder: string, files: readonly Found[]): Promise<void> {
  for (const { path, kind, mode, size, target } of files) {
    const header = { name: path, mode, type: kind, mtime: new Date(0) };
    if (kind === "file") {
      const entry = archive.entry({ ...header, size });
      await pipeline(createReadStream(join(folder, path)), entry);
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
