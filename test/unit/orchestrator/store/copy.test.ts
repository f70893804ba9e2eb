/** Copies of a SQLite database that is written meanwhile: each is whole and of one moment. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { dumpPostgres, restorePostgres } from "../../../../machine/backup/database.ts";
import { run } from "../../../../machine/base/commands.ts";
import { copySqlite, countRecords } from "../../../../orchestrator/store/copy.ts";
import { newMigratedDatabase } from "../../../support/store/databases.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "svc-copy-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

test("a copy has all that was committed, and nothing of what is under way", async () => {
  const place = folder();
  const path = join(place, "svc.db");
  const database = new SQLite(path);
  onTestFinished(() => void database.close());
  database.pragma("journal_mode = WAL");
  database.exec("create table a (n integer); create table b (n integer)");
  const both = database.transaction((n: number) => {
    database.prepare("insert into a values (?)").run(n);
    database.prepare("insert into b values (?)").run(n);
  });
  for (let n = 0; n < 500; n++) both(n);
  database.exec("begin immediate; insert into a values (-1)");
  const copy = join(place, "copy.db");
  copySqlite(path, copy);
  database.exec("rollback");
  both(1_000);
  expect(await countRecords(copy)).toEqual({ integrity: "ok", counts: { a: 500, b: 500 } });
  expect(await countRecords(path)).toEqual({ integrity: "ok", counts: { a: 501, b: 501 } });
  expect(() => copySqlite(path, copy)).toThrow(/already/);
});

test("records are counted in the database that the tests run on, and PostgreSQL's programs reach it", async () => {
  const database = await newMigratedDatabase({ folder: folder() });
  onTestFinished(() => database.drop());
  const { integrity, counts } = await countRecords(database.place);
  expect(integrity).toBe("ok");
  expect(counts).toMatchObject({ sandboxes: 0, projects: expect.any(Number) as number });
  if (!database.place.startsWith("postgres")) return;
  const dump = join(folder(), "database.dump");
  await dumpPostgres({ run }, database.place, dump);
  await database.query("delete from projects");
  await restorePostgres({ run }, database.place, dump);
  expect((await countRecords(database.place)).counts).toEqual(counts);
});

test("no database is made where there is none", async () => {
  const path = join(folder(), "none.db");
  expect(() => copySqlite(path, `${path}.copy`)).toThrow(/no database/);
  await expect(countRecords(path)).rejects.toThrow(/no database/);
});
