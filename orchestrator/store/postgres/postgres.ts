/** PostgreSQL 15 or newer as the store: a pool of connections whose transactions hold, whatever becomes of the server. */

import { type Dialect, PostgresDialect, type PostgresPool, type PostgresPoolClient } from "kysely";
import { DatabaseError, Pool, type PoolClient, type QueryResult, types } from "pg";
import { AppError } from "../../../shared/http/errors.ts";
import { storageFailure } from "../../../shared/http/storage-failures.ts";
import { findPrimary, type Primary } from "./connecting.ts";
import { urlsOfHosts } from "./hosts.ts";
import { listenForNews, type News, type NewsOptions } from "./news.ts";

/** Hears announcements over a connection of its own. */
export type Listen = (options: Omit<NewsOptions, "open">) => News;

interface OpenedPostgres {
  readonly dialect: Dialect;
  readonly listen: Listen;
}

/** Transactions at a time. Most wait for the server, not for the processor. */
const CONNECTIONS = 8;
const STATEMENT_MS = 30_000;
/** Beyond the server's own limit: a server that does not answer by then is gone, and the connection with it. */
const ANSWER_MS = STATEMENT_MS + 5_000;
const NAME = "svc-orchestrator";

const INT8 = 20;
const NUMERIC = 1700;

/**
 * A lost connection fails the statements under way, and the next statement opens another one. Throws when no server is a
 * primary of version 15 or newer.
 * @param url `postgresql://user:password@host:port/database?sslmode=…`, with `?host=<directory>` of a UNIX socket, or with
 * several servers: `host:port,host:port`
 */
export function openPostgres(url: string): OpenedPostgres {
  const options = {
    statement_timeout: STATEMENT_MS,
    query_timeout: ANSWER_MS,
    // A process that hangs within a transaction holds its locks no longer.
    idle_in_transaction_session_timeout: STATEMENT_MS,
    keepAlive: true,
    // The server ends the sessions of an orchestrator that vanished, and with them its locks, after half a minute.
    options: "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3",
    types: { getTypeParser: parserOf },
  };
  const primary = findPrimary(urlsOfHosts(url), options);
  const pool = new Pool({
    ...options,
    Client: primary.PoolClient,
    max: CONNECTIONS,
    idleTimeoutMillis: 0,
    // No limit for the wait for a free connection: whoever holds one has limits. Clients have one for the dial.
    connectionTimeoutMillis: 0,
    application_name: NAME,
  });
  // A connection that ends between two statements: the pool forgets it.
  pool.on("error", () => undefined);
  // The pool listens to idle connections only: one that is lost within a transaction would end the process.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return {
    dialect: new PostgresDialect({ pool: onPrimary(pool, primary) }),
    listen: (given) => listenForNews({ ...given, open: () => primary.open(`${NAME} news`) }),
  };
}

/** Counts and times are whole numbers far below 2^53. */
function parserOf(type: number, format?: "text" | "binary") {
  if (type === INT8 || type === NUMERIC) return Number;
  return types.getTypeParser(type, format) as (text: string) => unknown;
}

function onPrimary(pool: Pool, primary: Primary): PostgresPool {
  const state = { reached: false };
  return {
    async connect() {
      try {
        const client = await primary.find(
          () => pool.connect(),
          (standby) => standby.release(true),
        );
        state.reached = true;
        return lent(client);
      } catch (error) {
        // The operator who starts the program needs the reason itself: the address may be wrong.
        throw state.reached && isLoss(error) ? away("cannot be reached now", error) : error;
      }
    },
    end: () => pool.end(),
  };
}

/** A connection for one transaction, or for statements without one. It goes back to the pool only when it is as it came. */
function lent(client: PoolClient): PostgresPoolClient {
  const state = { broken: false };

  async function run(text: string, values: readonly unknown[]): Promise<QueryResult> {
    try {
      return await client.query(text, values.map(storable));
    } catch (error) {
      if (!isLoss(error)) throw error;
      state.broken = true;
      throw away("did not answer, or ended the connection, so a change may have been made or not", error);
    }
  }

  async function query(text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    if (text === "rollback") {
      // On a lost connection the server rolls back by itself, and the caller needs the error from before.
      return run(text, []).catch(() => NOTHING);
    }
    const result = await run(text, values);
    if (text === "commit" && result.command !== "COMMIT") {
      throw new AppError(
        "internal",
        "the database has rolled a transaction back, in which a statement had failed, at its commit",
      );
    }
    return result;
  }

  return {
    query: query as never,
    release: () => client.release(state.broken || client.getTransactionStatus() !== "I"),
  };
}

/** Tells whether the connection must be closed: the server has ended it, or has not answered, so that what it does is not known. */
function isLoss(error: unknown): boolean {
  return !(error instanceof AppError) && (!(error instanceof DatabaseError) || ENDING.test(error.code ?? ""));
}

/** For clients, who may try again: this is no fault of the program. A full disk and its like have their own sentence. */
function away(what: string, cause: unknown): unknown {
  if (storageFailure(cause) !== undefined) return cause;
  return new AppError("unavailable", `the database ${what}: look, and try again`, { cause });
}

/** The server ends the connection after these, or has become a standby. */
const ENDING = /^(08|57P|25P03$|25006$)/;

const NOTHING: QueryResult = { command: "ROLLBACK", rowCount: 0, oid: 0, fields: [], rows: [] };

/** PostgreSQL's text cannot hold U+0000, which a program in a sandbox may print. */
function storable(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\u{FFFD}") : value;
}
