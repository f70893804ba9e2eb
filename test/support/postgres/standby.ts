/**
 * Two PostgreSQL servers on loopback: a primary, and a standby that has each commit before the primary acknowledges it.
 * A test kills the first and promotes the second.
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { freePort } from "../peers/listening.ts";
import { until } from "../runner/until.ts";
import { findPrograms, NOBODY } from "./cluster.ts";

const run = promisify(execFile);

export interface StandbyPair {
  /** A URL that names both servers, the primary first. */
  readonly url: string;
  /** SIGKILL to every process of the primary, and the promotion of the standby at once. Resolves when it takes writes. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

interface Server {
  readonly child: ChildProcess;
  readonly data: string;
  readonly url: string;
}

/** Throws when the machine has no PostgreSQL programs. */
export async function startStandbyPair(): Promise<StandbyPair> {
  const programs = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), "svc-standby-"));
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (user.uid !== undefined) await chown(folder, NOBODY, NOBODY);
  const program = (name: string, ...args: string[]) => run(join(programs, name), args, { ...user, cwd: folder });
  const ports = { first: await freePort(), second: await freePort() };
  const started: ChildProcess[] = [];

  async function start(name: keyof typeof ports, settings: readonly string[]): Promise<Server> {
    const data = join(folder, name);
    const all = ["listen_addresses=127.0.0.1", `port=${ports[name]}`, "max_connections=200", ...settings];
    const child = spawn(
      join(programs, "postgres"),
      ["-D", data, "-k", folder, ...all.flatMap((setting) => ["-c", setting])],
      { ...user, cwd: folder, stdio: "ignore", detached: true },
    );
    started.push(child);
    const url = `postgresql://postgres@127.0.0.1:${ports[name]}/postgres`;
    await until(() => ask(url, "select 1").then(Boolean, () => false), {
      what: `an answer of the ${name} PostgreSQL server`,
      timeoutMs: 60_000,
    });
    return { child, data, url };
  }

  await program("initdb", "-D", join(folder, "first"), "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8");
  const primary = await start("first", ["wal_keep_size=128MB"]);
  const from = `host=127.0.0.1 port=${ports.first} user=postgres application_name=second`;
  await program("pg_basebackup", "-D", join(folder, "second"), "-d", from, "-c", "fast", "-X", "stream", "-R");
  const standby = await start("second", ["hot_standby=on", `primary_conninfo=${from}`]);
  await ask(primary.url, "alter system set synchronous_standby_names = 'FIRST 1 (second)'");
  await ask(primary.url, "select pg_reload_conf()");
  const isSynchronous = "select 1 from pg_stat_replication where sync_state = 'sync'";
  await until(async () => (await ask(primary.url, isSynchronous)).length === 1, {
    what: "the standby to be a synchronous one",
    timeoutMs: 30_000,
  });

  return {
    url: `postgresql://postgres@127.0.0.1:${ports.first},127.0.0.1:${ports.second}/postgres`,
    async failOver() {
      await killAll(primary.child);
      // The standby was copied before the primary waited for anybody, so it does not wait for the dead server.
      await program("pg_ctl", "-D", standby.data, "-w", "promote");
    },
    async stop() {
      await Promise.all(started.map(killAll));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Ends a server with all its processes, which are a group of their own. */
async function killAll(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  process.kill(-child.pid, "SIGKILL");
  await ended;
}

async function ask(url: string, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(statement)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
