/** Which files the agent goes on with, by the schema that they have. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../../../agent/store/database/database.ts";

async function fileOf(version: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-agent-schema-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "agent.db");
  const database = openDatabase(path);
  database.exec("insert into stopped (id, at) values ('e1', 7)");
  database.pragma(`user_version = ${version}`);
  database.close();
  return path;
}

test("the agent goes on with a file of the schema that agents before this one had reached", async () => {
  const database = openDatabase(await fileOf(16));
  expect(database.prepare("select id, at from stopped").all()).toEqual([{ id: "e1", at: 7 }]);
  database.close();
});

test.each([9, 17])(
  "the agent refuses a file of schema %i, names both schemas, and changes nothing",
  async (version) => {
    const path = await fileOf(version);
    expect(() => openDatabase(path)).toThrow(`${path} has schema ${version}, and this version reads schema 16 only`);
    const file = new Database(path, { readonly: true });
    expect(file.pragma("user_version", { simple: true })).toBe(version);
    expect(file.prepare("select id, at from stopped").all()).toEqual([{ id: "e1", at: 7 }]);
    file.close();
  },
);
