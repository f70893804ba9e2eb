/**
 * Opens connections to the primary among one or several servers. With several, a server that cannot be reached or is a
 * standby is passed over, and the first one that takes writes is asked first from then on: so a failover takes as long as
 * the promotion of the standby.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ClientBase, type ClientConfig } from "pg";
import { AppError } from "../../../shared/http/errors.ts";
import { checkPostgresVersion } from "./version.ts";

/** For one server; with several, a silent one must not hold up the others for long. */
const CONNECT_MS = { one: 10_000, several: 2_000 } as const;
/** How long several servers are asked in turn. */
const ROUNDS_MS = 10_000;
const BETWEEN_ROUNDS_MS = 50;

export interface Primary {
  /** The class of a pool's clients: each one dials the server that was the primary last. */
  readonly PoolClient: new () => ClientBase;
  /** A connection apart from any pool. */
  open(name: string): Promise<Client>;
  /**
   * Repeats `open`, with the next server each time, until its connection is to the primary.
   * @param leave gives up a connection to a server that is not the primary
   * @throws what the last server said
   */
  find<C extends ClientBase>(open: () => Promise<C>, leave: (client: C) => void): Promise<C>;
}

/** @param options of every connection, without its server */
export function findPrimary(urls: readonly [string, ...string[]], options: ClientConfig): Primary {
  const state = { turn: 0 };
  const several = urls.length > 1;
  const connectMs = several ? CONNECT_MS.several : CONNECT_MS.one;
  const current = () => urls[state.turn % urls.length] ?? urls[0];

  async function find<C extends ClientBase>(open: () => Promise<C>, leave: (client: C) => void): Promise<C> {
    const before = performance.now();
    for (let tries = 1; ; tries++) {
      try {
        const client = await open();
        if (checked.has(client)) return client;
        try {
          await check(client);
        } catch (error) {
          leave(client);
          throw error;
        }
        checked.add(client);
        return client;
      } catch (error) {
        if (!several || performance.now() - before > ROUNDS_MS) throw error;
        state.turn++;
        if (tries % urls.length === 0) await sleep(BETWEEN_ROUNDS_MS);
      }
    }
  }

  return {
    find,
    PoolClient: class extends Client {
      constructor(ofPool?: ClientConfig) {
        super({ ...ofPool, connectionTimeoutMillis: connectMs, connectionString: current() });
      }
    },
    open: (name) =>
      find(
        async () => {
          const client = new Client({
            ...options,
            application_name: name,
            connectionTimeoutMillis: connectMs,
            connectionString: current(),
          });
          // Without a listener the loss of an idle connection would end the process.
          client.on("error", () => undefined);
          await client.connect();
          return client;
        },
        (client) => void client.end().catch(() => undefined),
      ),
  };
}

/** Connections that are known to be to a primary of a version that will do. */
const checked = new WeakSet<ClientBase>();

async function check(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ version: number; standby: boolean }>(
    "select current_setting('server_version_num')::int as version, pg_is_in_recovery() as standby",
  );
  checkPostgresVersion(rows[0]?.version ?? 0);
  if (rows[0]?.standby === true) {
    throw new AppError(
      "unavailable",
      "the database server is a standby, which takes no writes: DATABASE_URL must name the primary",
    );
  }
}
