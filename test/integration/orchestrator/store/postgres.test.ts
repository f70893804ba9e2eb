/** PostgreSQL as the store: only its own behaviour; the store's tests cover the rest on either database. */

import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type OpenedDatabase, openDatabase } from "../../../../orchestrator/store/database.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { freePort } from "../../../support/peers/listening.ts";
import { type PostgresServer, startPostgres } from "../../../support/postgres/cluster.ts";
import { newDatabase, type TestDatabase } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

let server: PostgresServer;
let database: TestDatabase;
let opened: OpenedDatabase;
beforeAll(async () => {
  server = await startPostgres();
  database = await newDatabase({ server: server.url });
  opened = await openDatabase(database.place);
}, 90_000);
afterAll(async () => {
  await opened.close();
  await server.stop();
}, 60_000);

test("times and counts of PostgreSQL are numbers", async () => {
  const at = 1_790_000_000_123;
  const store = createStore(opened.database, () => at, testSeal);
  const project = await store.projects.create("numbers");
  const row = await opened.database
    .selectFrom("projects")
    .select((all) => ["created_at", all.fn.countAll().over().as("count")])
    .where("id", "=", project.id)
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ created_at: at, count: 1 });
});

test("a text with U+0000, which PostgreSQL cannot hold, is stored with a replacement character", async () => {
  const store = createStore(opened.database, () => 5, testSeal);
  await store.projects.create("nul\0byte");
  const rows = await opened.database.selectFrom("projects").select("name").where("name", "like", "nul%").execute();
  expect(rows).toEqual([{ name: "nul\u{FFFD}byte" }]);
});

test("a query with an empty list finds nothing", async () => {
  const store = createStore(opened.database, () => 5, testSeal);
  expect(await store.sandboxes.get("unknown")).toBeUndefined();
  const rows = await opened.database.selectFrom("projects").select("id").where("id", "in", []).execute();
  expect(rows).toEqual([]);
  expect(await store.buildLeftovers.removals([], 10)).toEqual([]);
});

test("the store works on after its connections are lost", async () => {
  await database.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like ?",
    `${NAME}%`,
  );
  // The first statement on the lost connection may fail; after that the store works again by itself.
  await expect.poll(() => opened.ping().then(() => "answers", String), { timeout: 30_000 }).toBe("answers");
});

test("a server that ends a connection under a statement, or that is away, is an error after which a client tries again", async () => {
  const own = await startPostgres({ port: await freePort() });
  onTestFinished(() => own.stop());
  const place = await newDatabase({ server: own.url });
  const there = await openDatabase(place.place);
  onTestFinished(() => there.close());
  const asked = sql`select pg_sleep(60)`.execute(there.database).then(() => "answered", String);
  const backends = () => place.query("select pid from pg_stat_activity where query like 'select pg_sleep%'");
  await expect.poll(backends).toHaveLength(1);
  await own.stop();
  expect(await asked).toContain("the database did not answer, or ended the connection");
  await expect
    .poll(() => there.ping().catch((error: unknown) => error))
    .toMatchObject({ code: "unavailable", status: 503 });
});

test("a URL with two servers is served by the one that answers", async () => {
  const second = await startPostgres({ port: await freePort() });
  onTestFinished(() => second.stop());
  const { port } = new URL(second.url);
  // Nothing listens on the first one.
  const both = await openDatabase(`postgresql://postgres@127.0.0.1:${await freePort()},127.0.0.1:${port}/postgres`);
  onTestFinished(() => both.close());
  expect(await both.ping()).toBeUndefined();
});

test("two orchestrators use one database at the same time", async () => {
  const second = await openDatabase(database.place);
  onTestFinished(() => second.close());
  expect(await Promise.all([opened.ping(), second.ping()])).toEqual([undefined, undefined]);
});

const NAME = "svc-orchestrator";
