/**
 * One connection, outside the pool, that hears what other processes announce. Announcements wake readers early and carry
 * nothing that is not in the tables: while the connection is away they are lost, so readers also look by themselves, and
 * whoever relies on hearing at once asks `listens` first.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import type { Client } from "pg";
import { withDeadline } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Database } from "../tables.ts";
import { cut } from "./cut.ts";

export interface News {
  /** False: announcements may be lost from now on, until `onListening`. */
  readonly listens: boolean;
  stop(): Promise<void>;
}

export interface NewsOptions {
  readonly open: () => Promise<Client>;
  readonly channel: string;
  readonly log: Log;
  /** @param text what was announced: empty, or an id */
  onNews(text: string): void;
  /** It listens, for the first time or again: readers look at everything that may have changed before. */
  onListening(): void;
  /** It does not listen any more. */
  onLost(): void;
}

/** Time between two questions to the server, and the longest wait for the answer: a silent server is found after both. */
const BEAT_MS = 1_500;
const ANSWER_MS = 2_000;
const AGAIN_MS = 100;

export function listenForNews({ open, channel, log, ...told }: NewsOptions): News {
  const stopping = new AbortController();
  const { signal } = stopping;
  const state = { listens: false };

  async function listen(): Promise<void> {
    const client = await open();
    if (signal.aborted) {
      cut(client);
      return;
    }
    const gone = new AbortController();
    const end = () => gone.abort();
    client.once("end", end);
    signal.addEventListener("abort", end, { once: true });
    client.on("notification", ({ channel: of, payload = "" }) => {
      if (of === channel) told.onNews(payload);
    });
    try {
      await answered(client, `listen ${quoted(channel)}`);
      state.listens = true;
      told.onListening();
      while (!gone.signal.aborted) {
        await sleep(BEAT_MS, undefined, { signal: gone.signal }).catch(() => undefined);
        if (!gone.signal.aborted) await answered(client, "select 1");
      }
    } finally {
      signal.removeEventListener("abort", end);
      cut(client);
      if (state.listens) {
        state.listens = false;
        told.onLost();
      }
    }
  }

  const running = (async () => {
    while (!signal.aborted) {
      try {
        await listen();
        if (!signal.aborted) log.warn({ channel }, "the connection that hears of other processes' changes has ended");
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error, channel }, "cannot hear of other processes' changes now");
      }
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  })();

  return {
    get listens() {
      return state.listens;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/**
 * Announces a change to every process that listens. After its commit and by itself: at the commit of an announcement
 * PostgreSQL takes a lock of the whole server.
 * @param text empty, or an id
 */
export async function announce(db: Database, channel: string, text: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${text})`.execute(db);
}

function answered(client: Client, text: string): Promise<unknown> {
  return withDeadline(client.query(text), ANSWER_MS, () => {
    throw new Error(`the database server has not answered for ${ANSWER_MS} ms`);
  });
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
