/** Puts a backup back on a machine whose orchestrator is stopped. Nothing that is there is deleted: it is put aside. */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, cp, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { lastWords } from "../base/commands.ts";
import { readInstance } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import { serviceUser } from "../evidence/files.ts";
import { lookAtPrograms } from "../evidence/programs.ts";
import { databasePath, databaseUrl, restorePostgres } from "./database.ts";
import { checkedManifest, type Manifest } from "./manifest.ts";

const LIMIT_MS = 3_600_000;
/** Files of the orchestrator's user, which reads them while it runs; all others are root's. */
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
    if (said.status !== 0) throw new Error(`${basename(archive)} cannot be unpacked: ${lastWords(said)}`);
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
  const stamp = new Date(machine.now()).toISOString().replaceAll(/[:.]/g, "");
  const other = await otherFiles(machine, content);
  if (other.length > 0 && !force) {
    throw new Error(
      `these files of the machine differ from the backup's: ${other.join(", ")}; --force replaces them and keeps the former beside them`,
    );
  }
  await putSettings(machine, content, stamp);
  onStep("settings, keys and certificates are back");
  if (manifest.database === "none") return;
  // The settings that are now in force say where the database is.
  const restored: Machine = { ...machine, instance: readInstance(machine.instance.name) };
  const url = await databaseUrl(restored.instance);
  if ((url !== undefined) !== (manifest.database === "PostgreSQL")) {
    throw new Error(`the backup is of ${manifest.database}, and the settings name another kind of database`);
  }
  if (url === undefined) await putSqlite(restored, content, stamp);
  else {
    if (!force) throw new Error("restoring replaces every record in the PostgreSQL database: say --force");
    await restorePostgres(restored, url, join(content, "database.dump"));
  }
  onStep(`${manifest.database}: the records of ${manifest.madeAt} are back`);
}

async function refuseWhileItRuns(machine: Machine): Promise<void> {
  const running = (await lookAtPrograms(machine)).filter(
    ({ pid, program }) => pid !== undefined && program !== "agent",
  );
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

async function placesOf({ instance }: Machine, content: string): Promise<readonly Placed[]> {
  const { config, state } = instance.places;
  const service = serviceUser() ?? { uid: 0, gid: 0 };
  const access = (name: string) => ({ mode: 0o600, ...(OF_SERVICE.has(name) ? service : { uid: 0, gid: 0 }) });
  const folders: readonly (readonly [string, string])[] = [
    ["config", config],
    ["agent-membership", join(state, "agent/membership")],
    ["edge-membership", join(state, "edge/membership")],
  ];
  const all: Placed[] = [];
  for (const [name, to] of folders) {
    const from = join(content, name);
    if (!existsSync(from)) continue;
    for (const file of await readdir(from)) all.push({ from: join(from, file), to: join(to, file), ...access(file) });
  }
  return all;
}

async function otherFiles(machine: Machine, content: string): Promise<readonly string[]> {
  const other: string[] = [];
  for (const { from, to } of await placesOf(machine, content)) {
    if (existsSync(to) && !(await readFile(to)).equals(await readFile(from))) other.push(to);
  }
  return other;
}

async function putSettings(machine: Machine, content: string, stamp: string): Promise<void> {
  for (const { from, to, mode, uid, gid } of await placesOf(machine, content)) {
    if (existsSync(to) && (await readFile(to)).equals(await readFile(from))) continue;
    if (!existsSync(dirname(to))) await mkdir(dirname(to), { recursive: true, mode: 0o750 });
    if (existsSync(to)) await rename(to, `${to}.before-${stamp}`);
    await put(from, to, { mode, uid, gid });
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
