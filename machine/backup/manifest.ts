/** What a backup holds, with a checksum of each file, so that a damaged or altered one is not restored. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";

export const MANIFEST = "manifest.json";
const FORM = 1;

/** Who may read a file on its machine: root, or the user of the orchestrator. */
export interface Access {
  readonly mode: number;
  readonly owner: "root" | "service";
  readonly group: "root" | "service";
}

export interface FileEntry {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Absent in backups of earlier versions, and for the records. */
  readonly access?: Access;
}

export interface Manifest {
  readonly form: number;
  readonly madeAt: string;
  readonly version: string;
  readonly instance: string;
  readonly role: string;
  readonly database: "SQLite" | "PostgreSQL" | "none";
  /** Records of each table, of the copy itself. */
  readonly counts: Readonly<Record<string, number>>;
  /** Absent where earlier versions counted PostgreSQL's records after the dump, while others were written. */
  readonly counted?: "in the copy";
  readonly files: readonly FileEntry[];
}

export function manifestOf(about: Omit<Manifest, "form">): Manifest {
  return { form: FORM, ...about };
}

export async function listFiles(directory: string): Promise<readonly FileEntry[]> {
  const names = await readdir(directory, { recursive: true });
  const files: FileEntry[] = [];
  for (const name of names.toSorted()) {
    const path = join(directory, name);
    const { size, isFile } = await lstat(path).then((found) => ({ size: found.size, isFile: found.isFile() }));
    if (isFile && name !== MANIFEST)
      files.push({ path: relative(directory, path), bytes: size, sha256: await hashOf(path) });
  }
  return files;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** Reads the manifest of an unpacked backup and compares every file. @throws with all differences */
export async function checkedManifest(directory: string): Promise<Manifest> {
  let manifest: Manifest;
  try {
    manifest = JSON.parse(await readFile(join(directory, MANIFEST), "utf8")) as Manifest;
  } catch (cause) {
    throw new Error(`this is no backup of svc: ${MANIFEST} is missing or damaged`, { cause });
  }
  if (manifest.form !== FORM) throw new Error(`the backup has form ${manifest.form}, and this version reads ${FORM}`);
  const wrong = differences(manifest.files, await listFiles(directory));
  if (wrong.length > 0) throw new Error(`the backup is damaged: ${wrong.join("; ")}`);
  return manifest;
}

/** Pure. */
function differences(wanted: readonly FileEntry[], found: readonly FileEntry[]): readonly string[] {
  const byPath = new Map(found.map((file) => [file.path, file]));
  const names = new Set(wanted.map(({ path }) => path));
  return [
    ...wanted.flatMap(({ path, bytes, sha256 }) => {
      const file = byPath.get(path);
      if (file === undefined) return [`${path} is missing`];
      if (file.bytes !== bytes) return [`${path} has ${file.bytes} bytes, and should have ${bytes}`];
      return file.sha256 === sha256 ? [] : [`the checksum of ${path} is another`];
    }),
    ...found.filter(({ path }) => !names.has(path)).map(({ path }) => `${path} is not in the manifest`),
  ];
}

/** Tables whose number of records differs, in words. Pure. */
export function countDifferences(
  wanted: Readonly<Record<string, number>>,
  found: Readonly<Record<string, number>>,
): readonly string[] {
  const tables = [...new Set([...Object.keys(wanted), ...Object.keys(found)])].toSorted();
  return tables
    .filter((table) => wanted[table] !== found[table])
    .map((table) => `${table}: ${found[table] ?? "no table"}, and should have ${wanted[table] ?? "no table"}`);
}
