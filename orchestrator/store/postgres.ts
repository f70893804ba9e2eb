/** PostgreSQL 15 or newer as the store. The only importer of pg. */

import { type Dialect, PostgresDialect, type PostgresPool } from "kysely";
import { Pool, type PoolClient, types } from "pg";
import { AppError } from "../../shared/http/errors.ts";
import { checkPostgresVersion } from "./postgres-version.ts";

export interface OpenedPostgres {
  readonly dialect: Dialect;
}

const CONNECT_MS = 10_000;
const STATEMENT_MS = 30_000;
/** How long a restarted orchestrator waits until the server has ended the session of its previous process. */
const LOCK_WAIT_MS = 30_000;
const LOCK_RETRY_MS = 250;
/** Key of the advisory lock: any number, as long as every orchestrator uses the same. */
const ORCHESTRATOR_LOCK = 7_382_001;

const INT8 = 20;
const NUMERIC = 1700;

/**
 * One connection, which holds an advisory lock that no second orchestrator of this database gets: transactions follow
 * each other as in SQLite, so a store behaves alike on both. A lost connection fails statements under way, and the next
 * statement opens a new one. Throws when the server is older than version 15, and when another orchestrator holds the
 * lock for longer than 30 s.
 * @param url `postgresql://user:password@host:port/database?sslmode=…`, or with `?host=<directory>` of a UNIX socket
 */
export function openPostgres(url: string): OpenedPostgres {
  const pool = new Pool({
    connectionString: url,
    max: 1,
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    keepAlive: true,
    // The server ends the session of an orchestrator that vanished, and with it the lock, after half a minute.
    options: "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3",
    application_name: "svc-orchestrator",
    types: { getTypeParser: parserOf },
  });
  // A connection that ends between two statements: the next statement reports it, or finds a new connection.
  pool.on("error", () => undefined);
  return { dialect: new PostgresDialect({ pool: lockedPool(pool) }) };
}

/** Counts and times are whole numbers far below 2^53. */
function parserOf(type: number, format?: "text" | "binary") {
  if (type === INT8 || type === NUMERIC) return Number;
  return types.getTypeParser(type, format) as (text: string) => unknown;
}

function lockedPool(pool: Pool): PostgresPool {
  const locked = new WeakSet<PoolClient>();
  return {
    async connect() {
      const client = await pool.connect();
      if (!locked.has(client)) {
        try {
          await checkVersion(client);
          await lock(client);
        } catch (error) {
          client.release(true);
          throw error;
        }
        locked.add(client);
      }
      return {
        query: ((text: string, values: readonly unknown[] = []) => client.query(text, values.map(storable))) as never,
        release: () => client.release(),
      };
    },
    end: () => pool.end(),
  };
}

async function checkVersion(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ version: number }>(
    "select current_setting('server_version_num')::int as version",
  );
  checkPostgresVersion(rows[0]?.version ?? 0);
}

/** Takes the advisory lock, which the connection holds until it ends for any reason. */
async function lock(client: PoolClient): Promise<void> {
  const before = Date.now();
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>("select pg_try_advisory_lock($1) as held", [
      ORCHESTRATOR_LOCK,
    ]);
    if (rows[0]?.held === true) return;
    if (Date.now() - before > LOCK_WAIT_MS) {
      throw new AppError("internal", "another orchestrator uses this database: stop it, or use another database");
    }
    await new Promise((resolve) => setTimeout(resolve, LOCK_RETRY_MS));
  }
}

/** PostgreSQL's text cannot hold U+0000, which a program in a sandbox may print. */
function storable(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\u{FFFD}") : value;
}
