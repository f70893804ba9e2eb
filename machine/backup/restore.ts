/** Puts a backup back on a machine whose orchestrator is stopped. Nothing that is there is deleted: it is put aside. */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, cp, mkdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { lastWords } from "../base/commands.ts";
import { type Instance, readInstance } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import { serviceUser } from "../evidence/files.ts";
import { lookAtPrograms } from "../evidence/programs/programs.ts";
import { databasePath, databaseUrl, restorePostgres } from "./database.ts";
import { placeOf } from "./folders.ts";
import { checkedManifest, type FileEntry, type Manifest } from "./manifest.ts";

const LIMIT_MS = 3_600_000;
/** Files of the orchestrator's user in backups that do not say whose each is; all others are root's. */
const OF_SERVICE = new Set(["admin-token", "secrets.key"]);

/** Unpacks and verifies it in a directory for root alone, and removes that afterwards. */
export async function withBackup<T>(
  { run }: Machine,
  archive: string,
  work: (content: string, manifest: Manifest) => Promise<T>,
): Promise<T> {
  if (!existsSync(archive)) throw new Error(`there is no file ${archive}`);
  const content = join(dirname(archive), `.svc-restore-${randomBytes(6).toString("hex")}`);
  await mkdir(content, { mode: 0o700 });
  try {
    const how = [
      "--extract",
      "--gzip",
      "--no-same-owner",
      "--no-same-permissions",
      "--file",
      archive,
      "--directory",
      content,
    ];
    const said = await run("tar", how, { limitMs: LIMIT_MS });
    // tar's last words are that it ends; its first ones say why.
    const [why = ""] = said.problem === undefined ? said.stderr.trim().split("\n", 1) : [];
    if (said.status !== 0)
      throw new Error(`${basename(archive)} cannot be unpacked: ${why === "" ? lastWords(said) : why}`);
    return await work(content, await checkedManifest(content));
  } finally {
    await rm(content, { recursive: true, force: true });
  }
}

export interface RestoreOptions {
  /** Replaces settings and keys of the machine that are other ones, and the records of a PostgreSQL database. */
  readonly force: boolean;
  readonly onStep: (text: string) => void;
}

export async function restore(
  machine: Machine,
  content: string,
  manifest: Manifest,
  { force, onStep }: RestoreOptions,
): Promise<void> {
  await refuseWhileItRuns(machine);
  // Before anything is put back: half a restore is none.
  if (manifest.database === "PostgreSQL" && !force)
    throw new Error("restoring replaces every record in the PostgreSQL database: say --force");
  const stamp = new Date(machine.now()).toISOString().replaceAll(/[:.]/g, "");
  const places = placesOf(machine, content, manifest);
  const other = await otherFiles(places);
  if (other.length > 0 && !force) {
    throw new Error(
      `these files of the machine differ from the backup's: ${other.join(", ")}; --force replaces them and keeps the former beside them`,
    );
  }
  await putSettings(machine, places, stamp);
  onStep("settings, keys and certificates are back");
  if (manifest.database === "none") return;
  // The settings that are now in force say where the database is.
  const restored: Machine = { ...machine, instance: readInstance(machine.instance.name, machine.instance.root) };
  const url = await databaseUrl(restored.instance);
  if ((url !== undefined) !== (manifest.database === "PostgreSQL")) {
    throw new Error(`the backup is of ${manifest.database}, and the settings name another kind of database`);
  }
  if (url === undefined) await putSqlite(restored, content, stamp);
  else await restorePostgres(restored, url, join(content, "database.dump"));
  onStep(`${manifest.database}: the records of ${manifest.madeAt} are back`);
}

async function refuseWhileItRuns(machine: Machine): Promise<void> {
  const running = (await lookAtPrograms(machine)).filter(
    ({ pid, program }) => pid !== undefined && program !== "agent",
  );
  // What a killed command did not say is no sign that nothing runs.
  machine.signal?.throwIfAborted();
  if (running.length === 0) return;
  const [program = ""] = running.map((one) => one.program);
  throw new Error(`the ${program} runs: stop it first (./scripts/service stop ${program})`);
}

interface Placed {
  readonly from: string;
  readonly to: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

const ROOT = { uid: 0, gid: 0 };

function placesOf({ instance }: Machine, content: string, { files }: Manifest): readonly Placed[] {
  return files.flatMap((file) => {
    const to = placeOf(instance, file.path);
    return to === undefined ? [] : [{ from: join(content, file.path), to, ...accessAfter(file) }];
  });
}

function accessAfter({ path, access }: FileEntry): Pick<Placed, "mode" | "uid" | "gid"> {
  const service = serviceUser() ?? ROOT;
  if (access === undefined) return { mode: 0o600, ...(OF_SERVICE.has(basename(path)) ? service : ROOT) };
  const of = (who: "root" | "service") => (who === "service" ? service : ROOT);
  return { mode: access.mode, uid: of(access.owner).uid, gid: of(access.group).gid };
}

async function otherFiles(places: readonly Placed[]): Promise<readonly string[]> {
  const other: string[] = [];
  for (const { from, to } of places) {
    if (existsSync(to) && !(await readFile(to)).equals(await readFile(from))) other.push(to);
  }
  return other;
}

async function putSettings({ instance }: Machine, places: readonly Placed[], stamp: string): Promise<void> {
  for (const { from, to, mode, uid, gid } of places) {
    if (existsSync(to) && (await readFile(to)).equals(await readFile(from))) continue;
    await makeFolder(instance, dirname(to));
    if (existsSync(to)) await rename(to, `${to}.before-${stamp}`);
    await put(from, to, { mode, uid, gid });
  }
}

/** The orchestrator's user has a way to the settings and to the folders in them; a membership is root's alone. */
async function makeFolder({ places: { config } }: Instance, path: string): Promise<void> {
  if (existsSync(path)) return;
  const isOfSettings = path === config || path.startsWith(`${config}/`);
  await mkdir(path, { recursive: true, mode: 0o700 });
  if (!isOfSettings) return;
  for (let folder = path; folder.length >= config.length; folder = dirname(folder)) {
    await chown(folder, 0, (serviceUser() ?? ROOT).gid);
    await chmod(folder, 0o750);
  }
}

async function putSqlite(machine: Machine, content: string, stamp: string): Promise<void> {
  const path = databasePath(machine.instance);
  const service = serviceUser() ?? { uid: 0, gid: 0 };
  // The write-ahead log belongs to the former file: with the restored one it would be damage.
  for (const end of ["", "-wal", "-shm"]) {
    if (existsSync(`${path}${end}`)) await rename(`${path}${end}`, `${path}.before-${stamp}${end}`);
  }
  if (!existsSync(dirname(path))) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await chown(dirname(path), service.uid, service.gid);
  }
  await put(join(content, "svc.db"), path, { mode: 0o600, ...service });
}

async function put(from: string, to: string, { mode, uid, gid }: Pick<Placed, "mode" | "uid" | "gid">): Promise<void> {
  const unfinished = `${to}.restored`;
  await cp(from, unfinished);
  await chmod(unfinished, mode);
  await chown(unfinished, uid, gid);
  await rename(unfinished, to);
}
