/** What a process hears of others through PostgreSQL, and what it knows while it hears nothing. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { findPrimary } from "../../../../orchestrator/store/postgres/connecting.ts";
import { announce, listenForNews, type News } from "../../../../orchestrator/store/postgres/news.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { type PostgresServer, startPostgres } from "../../../support/postgres/cluster.ts";
import { newDatabase, openBeside, type TestDatabase } from "../../../support/store/databases.ts";

const log = createLog({ component: "test", level: "silent" });
const NAME = "listener of the test";

let server: PostgresServer | undefined;
let database: TestDatabase;
beforeAll(async () => {
  const shared = process.env["SVC_TEST_POSTGRES"];
  server = shared === undefined ? await startPostgres() : undefined;
  database = await newDatabase({ server: server?.url ?? shared ?? null });
}, 120_000);
afterAll(async () => {
  await database.drop();
  await server?.stop();
}, 60_000);

/** A listener, and everything that it was told in order. */
function listener(): { readonly news: News; readonly told: string[] } {
  const told: string[] = [];
  const primary = findPrimary([database.place], {});
  const news = listenForNews({
    open: () => primary.open(NAME),
    channel: 'a "channel"',
    log,
    onNews: (text) => void told.push(`news ${text}`),
    onListening: () => void told.push("listening"),
    onLost: () => void told.push("lost"),
  });
  onTestFinished(() => news.stop());
  return { news, told };
}

async function sender() {
  const other = await openBeside(database.place);
  onTestFinished(() => other.close());
  return (text: string) => announce(other.database, 'a "channel"', text);
}

/** The server's process behind the listener. */
async function backend(): Promise<number> {
  const rows = await database.query("select pid from pg_stat_activity where application_name = ?", NAME);
  return Number(rows[0]?.["pid"]);
}

test("a process hears what another one announces, in order, and nothing of other channels", async () => {
  const { told } = listener();
  const say = await sender();
  await expect.poll(() => told).toEqual(["listening"]);
  await database.query("select pg_notify('another channel', 'x')");
  await say("one");
  await say("");
  await expect.poll(() => told).toEqual(["listening", "news one", "news "]);
});

test("a process whose connection ends knows it, and hears again over another one", async () => {
  const { news, told } = listener();
  const say = await sender();
  await expect.poll(() => told).toEqual(["listening"]);
  const before = told.length;
  await database.query("select pg_terminate_backend(?::int)", await backend());
  await expect.poll(() => told.slice(before, before + 2), { timeout: 30_000 }).toEqual(["lost", "listening"]);
  // A machine that stands still for some seconds loses the connection once more, and what is said meanwhile.
  await expect.poll(() => news.listens).toBe(true);
  const heard = async () => {
    await say("two");
    return told;
  };
  await expect.poll(heard).toContain("news two");
});

test("a process finds out that its server has fallen silent, and hears again over another connection", async () => {
  const { told } = listener();
  const say = await sender();
  await expect.poll(() => told).toEqual(["listening"]);
  const pid = await backend();
  const before = told.length;
  process.kill(pid, "SIGSTOP");
  try {
    await expect.poll(() => told.slice(before, before + 2), { timeout: 30_000 }).toEqual(["lost", "listening"]);
    const heard = async () => {
      await say("three");
      return told;
    };
    await expect.poll(heard).toContain("news three");
  } finally {
    process.kill(pid, "SIGCONT");
  }
});

test("a listener that is stopped tells that it hears nothing any more", async () => {
  const { news, told } = listener();
  await expect.poll(() => news.listens).toBe(true);
  await news.stop();
  expect(news.listens).toBe(false);
  expect(told.slice(-2)).toEqual(["listening", "lost"]);
});
