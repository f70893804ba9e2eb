/**
 * A PostgreSQL server for tests: it runs the machine's own programs, listens on a UNIX socket, and is removed afterwards.
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { until } from "../runner/until.ts";

const run = promisify(execFile);
/** The places of Debian's programs, and of those that scripts/host/test/postgres has unpacked. */
const PLACES = ["/usr/lib/postgresql", "/opt/svc/test/postgres/usr/lib/postgresql"];
/** The server's user: PostgreSQL refuses to run as root. */
export const NOBODY = 65_534;

export interface PostgresServer {
  /** The URL of the database `postgres`, beside which tests make others. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts a server; throws when the machine has no PostgreSQL programs.
 * @param port of 127.0.0.1, in place of the socket
 * @param durable the server writes to the disk as one with real data does; tests are quicker without
 */
export async function startPostgres({
  port,
  durable = false,
}: {
  readonly port?: number;
  readonly durable?: boolean;
} = {}): Promise<PostgresServer> {
  const programs = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), "svc-postgres-"));
  const asRoot = process.getuid?.() === 0;
  const user = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (asRoot) await chown(folder, NOBODY, NOBODY);
  const data = join(folder, "data");
  await run(join(programs, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8", "-N"], {
    ...user,
    cwd: folder,
  });
  const careless = durable ? [] : ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];
  const settings = [...careless, "max_connections=200"];
  const listening =
    port === undefined ? ["-c", "listen_addresses="] : ["-c", "listen_addresses=127.0.0.1", "-p", String(port)];
  const server = spawn(
    join(programs, "postgres"),
    ["-D", data, "-k", folder, ...listening, ...settings.flatMap((setting) => ["-c", setting])],
    { ...user, cwd: folder, stdio: "ignore" },
  );
  const url =
    port === undefined
      ? `postgresql://postgres@localhost/postgres?host=${encodeURIComponent(folder)}`
      : `postgresql://postgres@127.0.0.1:${port}/postgres`;
  await until(() => answers(url), { what: "an answer of the tests' PostgreSQL server", timeoutMs: 60_000 });
  return {
    url,
    async stop() {
      await end(server);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function findPrograms(): Promise<string> {
  for (const place of PLACES) {
    const versions = await readdir(place).catch(() => []);
    const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
    if (newest !== undefined && Number(newest) >= 15) return join(place, newest, "bin");
  }
  throw new Error(`there is no PostgreSQL 15 or newer in ${PLACES.join(" or ")}: run scripts/host/test/postgres`);
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  // SIGQUIT means "immediate shutdown", which is enough because no data is kept.
  server.kill("SIGQUIT");
  await ended;
}
