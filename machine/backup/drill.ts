/**
 * Tries a backup: an orchestrator starts on a copy of it, in a network of its own without any way out, so that it reaches no node,
 * no webhook and nobody else. Says what differs from the backup.
 */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { settingsIn } from "../../shared/program/service/settings-lines.ts";
import { PATH } from "../base/commands.ts";
import type { Machine } from "../base/this-machine.ts";
import { serviceUser, type User } from "../evidence/files.ts";
import { countDump, countRecords } from "./database.ts";
import { countDifferences, type Manifest } from "./manifest.ts";

export interface Drilled {
  readonly problems: readonly string[];
  readonly records: number;
  readonly seconds: number;
}

const START_MS = 60_000;
const API = "http://127.0.0.1:3000";

export async function drill(machine: Machine, content: string, manifest: Manifest): Promise<Drilled> {
  const begun = performance.now();
  const seconds = () => Math.round((performance.now() - begun) / 100) / 10;
  const records = Object.values(manifest.counts).reduce((sum, one) => sum + one, 0);
  if (manifest.database !== "SQLite")
    return { problems: await ofDump(machine, content, manifest), records, seconds: seconds() };
  if (!existsSync(join(machine.instance.places.app, "orchestrator.js")))
    throw new Error(
      "a drill starts the orchestrator of this machine, and there is none: run it where ./scripts/up has",
    );
  const user = serviceUser() ?? { uid: 0, gid: 0 };
  // Below a directory to which the orchestrator's user has a way.
  const scratch = await mkdtemp(join(machine.instance.places.state, "orchestrator", ".drill-"));
  try {
    const database = join(scratch, "svc.db");
    await handOver(join(content, "svc.db"), database, user);
    await chown(scratch, user.uid, user.gid);
    const { integrity, counts } = await countRecords(machine, database);
    const problems = [
      ...(integrity === "ok" ? [] : [`the database is damaged: ${integrity}`]),
      ...countDifferences(manifest.counts, counts),
    ];
    const started = await tried(machine, { content, scratch, database, user });
    return { problems: [...problems, ...started], records, seconds: seconds() };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** PostgreSQL has no scratch server here: the dump is read to its end, and its records are counted. */
async function ofDump(
  machine: Machine,
  content: string,
  { database, counts, counted }: Manifest,
): Promise<readonly string[]> {
  if (database === "none") return [];
  try {
    const found = await countDump(machine, join(content, "database.dump"));
    return counted === undefined ? [] : countDifferences(counts, found);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

async function handOver(from: string, to: string, { uid, gid }: User): Promise<void> {
  await cp(from, to);
  await chmod(to, 0o600);
  await chown(to, uid, gid);
}

interface Scratch {
  readonly content: string;
  readonly scratch: string;
  readonly database: string;
  readonly user: User;
}

async function tried(machine: Machine, { content, scratch, database, user }: Scratch): Promise<readonly string[]> {
  const config = join(content, "config");
  const files = join(scratch, "config");
  await mkdir(files, { mode: 0o700 });
  for (const name of ["admin-token", "secrets.key"])
    await handOver(join(config, name), join(files, name), user).catch(() => undefined);
  await chown(files, user.uid, user.gid);
  const env = await environmentOf(config, { database, files });
  const { app } = machine.instance.places;
  const who = ["--reuid", String(user.uid), "--regid", String(user.gid), "--clear-groups"];
  const start = 'ip link set lo up && exec setpriv "$@"';
  const program = [...who, join(app, "node"), join(app, "orchestrator.js")];
  const child = spawn("unshare", ["--net", "sh", "-c", start, "sh", ...program], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    cwd: "/",
    env: { ...env, PATH, LC_ALL: "C.UTF-8" },
  });
  const said = { text: "" };
  child.stdout
    .setEncoding("utf8")
    .on("data", (text: string) => void (said.text = `${said.text}${text}`.slice(-20_000)));
  const ended = new Promise<void>((resolve) => void child.once("close", () => resolve()));
  try {
    const token = (await readFile(join(config, "admin-token"), "utf8")).split(/\s/, 1)[0] ?? "";
    return await questions(machine, child.pid ?? 0, {
      token,
      log: () => said.text,
      isOver: () => child.exitCode !== null,
    });
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
  }
}

/** The settings of the backup, with every place in the scratch directory and no address but loopback. */
async function environmentOf(
  config: string,
  { database, files }: { readonly database: string; readonly files: string },
): Promise<Readonly<Record<string, string>>> {
  const read = async (name: string) => settingsIn(await readFile(join(config, name), "utf8").catch(() => ""));
  const settings = { ...(await read("orchestrator.env")), ...(await read("orchestrator.own.env")) };
  const own = Object.entries(settings).filter(([name]) => !/^SVC_(NODES|TLS)_/.test(name));
  return {
    ...Object.fromEntries(own),
    SVC_API_HOST: "127.0.0.1",
    SVC_API_PORT: "3000",
    SVC_EDGE_HOST: "127.0.0.1",
    SVC_EDGE_PORT: "3002",
    SVC_DATABASE: database,
    SVC_ADMIN_TOKEN_FILE: join(files, "admin-token"),
    ...("SVC_SECRETS_KEY_FILE" in settings ? { SVC_SECRETS_KEY_FILE: join(files, "secrets.key") } : {}),
  };
}

interface Running {
  readonly token: string;
  readonly log: () => string;
  readonly isOver: () => boolean;
}

async function questions(machine: Machine, pid: number, { token, log, isOver }: Running): Promise<readonly string[]> {
  const call = async (path: string): Promise<{ readonly status: number; readonly text: string }> => {
    const curl = [
      "curl",
      "-q",
      "--noproxy",
      "*",
      "-sS",
      "-m",
      "10",
      "-H",
      "@-",
      "-w",
      "\\n%{http_code}",
      `${API}${path}`,
    ];
    // The token comes by standard input, because every user of the machine can read command lines.
    const said = await machine.run("nsenter", [`--net=/proc/${pid}/ns/net`, ...curl], {
      input: `x-admin-token: ${token}\n`,
    });
    const at = said.stdout.lastIndexOf("\n");
    return { status: Number(said.stdout.slice(at + 1)), text: said.stdout.slice(0, at) };
  };
  const deadline = performance.now() + START_MS;
  while ((await call("/livez")).status !== 204) {
    machine.signal?.throwIfAborted();
    const last = log().trim().split("\n").at(-1)?.slice(0, 400) ?? "";
    if (isOver()) return [`the orchestrator does not start on it: ${last}`];
    if (performance.now() > deadline) return [`the orchestrator did not answer within ${START_MS / 1_000} s: ${last}`];
    await new Promise((resolve) => void setTimeout(resolve, 200));
  }
  const problems: string[] = [];
  const { checks = {} } = JSON.parse((await call("/readyz?verbose")).text) as {
    readonly checks?: Record<string, string>;
  };
  for (const name of ["database", "migrations"]) {
    if (checks[name]?.startsWith("ok") !== true) problems.push(`${name}: ${checks[name] ?? "not said"}`);
  }
  for (const path of ["/admin/projects", "/admin/sandboxes", "/admin/rotation"]) {
    const { status } = await call(path);
    if (status !== 200) problems.push(`${path} answers ${status}`);
  }
  return problems;
}
