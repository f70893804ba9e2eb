/**
 * Somebody deletes or replaces the files of the SQLite database's log while the store has them open. What a process that is killed
 * leaves behind is what lies in the folder: each test starts from a copy of it, as the next start does.
 */

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import Database from "better-sqlite3";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { createLog } from "../../../../shared/program/log.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-journal-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function openStore() {
  const folder = newFolder();
  const path = join(folder, "svc.db");
  const lines: { msg: string; files?: readonly string[] }[] = [];
  const destination = new Writable({
    write(line, _encoding, done) {
      lines.push(JSON.parse(String(line)) as (typeof lines)[number]);
      done();
    },
  });
  const opened = await openDatabase(path, createLog({ component: "test", level: "warn", destination }));
  onTestFinished(() => opened.close());
  await sql`create table kept (word text)`.execute(opened.database);
  const commit = (word: string) => sql`insert into kept values (${word})`.execute(opened.database);
  await commit("before");
  return {
    path,
    wal: `${path}-wal`,
    shm: `${path}-shm`,
    lines,
    commit,
    database: opened.database,
    left: () => left(folder),
  };
}

/** What the next start finds after the process is killed now; undefined: no database that can be read. */
function left(folder: string): string[] | undefined {
  const copy = newFolder();
  cpSync(folder, copy, { recursive: true });
  const database = new Database(join(copy, "svc.db"));
  try {
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    return database.prepare("select word from kept order by rowid").pluck().all() as string[];
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

const inode = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

test("nothing committed is lost when the log is deleted, and one warning names it", async () => {
  const store = await openStore();
  rmSync(store.wal);
  await store.commit("after");
  await expect.poll(store.left).toEqual(["before", "after"]);
  await expect.poll(() => existsSync(store.wal)).toBe(true);
  await store.commit("later");
  expect(store.left()).toEqual(["before", "after", "later"]);
  expect(store.lines).toMatchObject([
    { files: [store.wal], msg: expect.stringContaining("began a new log") as unknown },
  ]);
});

test("nothing committed is lost when the log is replaced by an older one", async () => {
  const store = await openStore();
  const older = readFileSync(store.wal);
  await store.commit("between");
  rmSync(store.wal);
  writeFileSync(store.wal, older);
  await store.commit("after");
  await expect.poll(store.left).toEqual(["before", "between", "after"]);
  await store.commit("later");
  expect(store.left()).toEqual(["before", "between", "after", "later"]);
  expect(store.lines).toMatchObject([{ files: [store.wal] }]);
});

test("the index of the log is made anew when it is deleted, and other programs see what is committed", async () => {
  const store = await openStore();
  rmSync(store.shm);
  await store.commit("after");
  await expect.poll(() => existsSync(store.shm)).toBe(true);
  await store.commit("later");
  expect(store.left()).toEqual(["before", "after", "later"]);
  expect(store.lines).toMatchObject([{ files: [store.shm] }]);
});

test("a log that is deleted during a transaction is begun anew after it", async () => {
  const store = await openStore();
  await store.database.transaction().execute(async (session) => {
    await sql`insert into kept values ('inside')`.execute(session);
    rmSync(store.wal);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(existsSync(store.wal)).toBe(false);
    await sql`insert into kept values ('to its end')`.execute(session);
  });
  await expect.poll(store.left).toEqual(["before", "inside", "to its end"]);
  expect(store.lines).toHaveLength(1);
});

test("a log whose files stay as they are is left alone", async () => {
  const store = await openStore();
  const files = [store.path, store.wal, store.shm];
  const before = files.map(inode);
  await new Promise((resolve) => setTimeout(resolve, 2_200));
  await store.commit("after");
  expect([files.map(inode), store.lines]).toEqual([before, []]);
  // It is still in the log: nothing wrote it into the database's own file.
  rmSync(store.wal);
  expect(store.left()).toBeUndefined();
});
