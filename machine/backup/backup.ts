/**
 * Makes a backup while the platform runs: the records as of one moment, and the keys, certificates and settings without which
 * they open nothing. One archive for root alone. What nodes store (memory, disks, images, volumes) is not in it.
 */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, cp, mkdir, open, readdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { VERSION } from "../../shared/version.ts";
import { giveName } from "../base/appear.ts";
import { lastWords } from "../base/commands.ts";
import type { Machine } from "../base/this-machine.ts";
import { serviceUser } from "../evidence/files.ts";
import { copySqlite, countDump, countRecords, databasePath, databaseUrl, dumpPostgres } from "./database.ts";
import { accessOf, foldersOf, placeOf } from "./folders.ts";
import { type FileEntry, listFiles, MANIFEST, type Manifest, manifestOf } from "./manifest.ts";

const LIMIT_MS = 3_600_000;
/** What a copy leaves free beside the database. */
const ROOM_BYTES = 64 * 2 ** 20;

export interface BackupOptions {
  /** The archive; it is made in one step. */
  readonly path: string;
  readonly onStep: (text: string) => void;
}

export async function makeBackup(machine: Machine, { path, onStep }: BackupOptions): Promise<Manifest> {
  const { instance } = machine;
  if (existsSync(path)) throw new Error(`there is a file ${path} already`);
  if (!existsSync(instance.places.config))
    throw new Error(`there is no platform on this machine: ${instance.places.config} is missing`);
  const work = join(dirname(path), `.svc-backup-${randomBytes(6).toString("hex")}`);
  await mkdir(work, { mode: 0o700 });
  try {
    const content = join(work, "content");
    await mkdir(content, { mode: 0o700 });
    const { database, counts, counted } = await copyDatabase(machine, work, content);
    onStep(database === "none" ? "no database on this machine" : `${database}: ${sum(counts)} records`);
    await copySettings(machine, content);
    const files = await withAccess(machine, await listFiles(content));
    onStep(`settings, keys and certificates: ${files.length} files`);
    const madeAt = new Date(machine.now()).toISOString();
    const manifest = manifestOf({
      madeAt,
      version: VERSION,
      instance: instance.name,
      role: instance.role,
      database,
      counts,
      ...(counted === undefined ? {} : { counted }),
      files,
    });
    await writeFile(join(content, MANIFEST), JSON.stringify(manifest, null, 2), { mode: 0o600 });
    await pack(machine, content, join(work, "archive"));
    await giveName(join(work, "archive"), path);
    return manifest;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, one) => all + one, 0);
}

async function copyDatabase(
  machine: Machine,
  work: string,
  content: string,
): Promise<Pick<Manifest, "database" | "counts" | "counted">> {
  const { instance } = machine;
  if (!instance.programs.includes("orchestrator")) return { database: "none", counts: {} };
  const url = await databaseUrl(instance);
  if (url !== undefined) {
    const dump = join(content, "database.dump");
    await dumpPostgres(machine, url, dump);
    return { database: "PostgreSQL", counts: await countDump(machine, dump), counted: "in the copy" };
  }
  // In the state directory, to which the orchestrator's user has a way.
  const place = join(instance.places.state, "orchestrator", `.backup-${work.slice(-12)}`);
  const user = serviceUser();
  await refuseShortDisk(databasePath(instance), dirname(place));
  await mkdir(place, { mode: 0o700 });
  try {
    if (user !== undefined) await chown(place, user.uid, user.gid);
    const copy = join(place, "svc.db");
    await copySqlite(machine, copy);
    const { integrity, counts } = await countRecords(machine, copy);
    if (integrity !== "ok") throw new Error(`the copy of the database is damaged: ${integrity}`);
    const to = join(content, "svc.db");
    await cp(copy, to);
    await chmod(to, 0o600);
    await chown(to, 0, 0);
    return { database: "SQLite", counts };
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** A copy that fills the disk of the database would stop the platform. */
async function refuseShortDisk(database: string, folder: string): Promise<void> {
  const size = (await stat(database).catch(() => undefined))?.size ?? 0;
  const { bavail, bsize } = await statfs(folder);
  if (leavesRoom({ size, free: bavail * bsize })) return;
  const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
  throw new Error(
    `${folder} has ${mebibytes(bavail * bsize)} free, and the copy of the database takes ${mebibytes(size)}: make room first`,
  );
}

/** Pure. */
export function leavesRoom({ size, free }: { readonly size: number; readonly free: number }): boolean {
  return free - size >= ROOM_BYTES;
}

/** The settings' directory with the folders in it, such as that of the certificates, and what makes this machine a node or an edge of a platform. */
async function copySettings({ instance }: Machine, content: string): Promise<void> {
  for (const [name, from] of Object.entries(foldersOf(instance))) {
    if (existsSync(from)) await copyFiles(from, join(content, name));
  }
}

/** Plain files and folders alone: no link is followed. */
async function copyFiles(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyFiles(source, target);
    if (!entry.isFile()) continue;
    await cp(source, target);
    await chmod(target, 0o600);
  }
}

/** A restored key that its program cannot read would be of no use, so who may read each file is written down. */
async function withAccess({ instance }: Machine, files: readonly FileEntry[]): Promise<readonly FileEntry[]> {
  return Promise.all(
    files.map(async (file) => {
      const place = placeOf(instance, file.path);
      const access = place === undefined ? undefined : await accessOf(place);
      return access === undefined ? file : { ...file, access };
    }),
  );
}

async function pack({ run }: Machine, content: string, archive: string): Promise<void> {
  await writeFile(archive, "", { mode: 0o600 });
  const said = await run("tar", ["--create", "--gzip", "--file", archive, "--directory", content, "."], {
    limitMs: LIMIT_MS,
  });
  if (said.status !== 0) throw new Error(`the archive was not written: ${lastWords(said)}`);
  // A power cut must not leave a backup that is there by name alone.
  const file = await open(archive, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
