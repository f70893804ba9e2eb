/** What a backup is checked by: checksums, counts, and addresses of PostgreSQL that are on no command line. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { leavesRoom } from "../../../machine/backup/backup.ts";
import { libpq } from "../../../machine/backup/database.ts";
import {
  checkedManifest,
  countDifferences,
  listFiles,
  MANIFEST,
  manifestOf,
} from "../../../machine/backup/manifest.ts";

async function backupFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "svc-backup-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "config"));
  writeFileSync(join(folder, "svc.db"), "records");
  writeFileSync(join(folder, "config/admin-token"), "token");
  const about = {
    madeAt: "2026-11-20T12:00:00Z",
    version: "0.1.0",
    instance: "",
    role: "",
    database: "SQLite",
  } as const;
  const manifest = manifestOf({ ...about, counts: { sandboxes: 2 }, files: await listFiles(folder) });
  writeFileSync(join(folder, MANIFEST), JSON.stringify(manifest));
  return folder;
}

test("an unharmed backup passes", async () => {
  const { files, counts } = await checkedManifest(await backupFolder());
  expect(files.map(({ path }) => path)).toEqual(["config/admin-token", "svc.db"]);
  expect(counts).toEqual({ sandboxes: 2 });
});

test.each<[string, (folder: string) => void, RegExp]>([
  ["a changed file", (folder) => writeFileSync(join(folder, "svc.db"), "recordz"), /checksum of svc\.db is another/],
  ["a cut file", (folder) => writeFileSync(join(folder, "svc.db"), "rec"), /svc\.db has 3 bytes, and should have 7/],
  ["a missing file", (folder) => rmSync(join(folder, "config/admin-token")), /config\/admin-token is missing/],
  [
    "a file that was added",
    (folder) => writeFileSync(join(folder, "config/x"), ""),
    /config\/x is not in the manifest/,
  ],
  [
    "a link in the place of a file",
    (folder) => {
      rmSync(join(folder, "svc.db"));
      symlinkSync("/etc/hostname", join(folder, "svc.db"));
    },
    /svc\.db is missing/,
  ],
  ["no manifest", (folder) => rmSync(join(folder, MANIFEST)), /no backup of svc/],
  ["a form that is not known", (folder) => writeFileSync(join(folder, MANIFEST), '{"form":9}'), /form 9/],
])("%s is refused", async (_what, harm, words) => {
  const folder = await backupFolder();
  harm(folder);
  await expect(checkedManifest(folder)).rejects.toThrow(words);
});

test.each([
  [100, 300, true],
  [100, 164, true],
  [100, 163, false],
  [100, 0, false],
])("a copy of %i MiB on a disk with %i MiB free leaves room: %s", (size, free, leaves) => {
  expect(leavesRoom({ size: size * 2 ** 20, free: free * 2 ** 20 })).toBe(leaves);
});

test("tables whose number of records differs are named", () => {
  expect(countDifferences({ a: 1, b: 2 }, { a: 1, b: 2 })).toEqual([]);
  expect(countDifferences({ a: 1, b: 2 }, { a: 3, c: 1 })).toEqual([
    "a: 3, and should have 1",
    "b: no table, and should have 2",
    "c: 1, and should have no table",
  ]);
});

test.each([
  [
    "postgresql://svc:p%40ss@db.example.org/platform",
    { PGHOST: "db.example.org", PGPORT: "5432", PGUSER: "svc", PGPASSWORD: "p@ss", PGDATABASE: "platform" },
  ],
  [
    "postgres://svc@one:5433,two/platform?sslmode=require",
    {
      PGHOST: "one,two",
      PGPORT: "5433,5432",
      PGUSER: "svc",
      PGDATABASE: "platform",
      PGSSLMODE: "require",
      PGTARGETSESSIONATTRS: "read-write",
    },
  ],
  [
    "postgresql:///platform?host=/run/postgresql",
    { PGHOST: "/run/postgresql", PGPORT: "5432", PGDATABASE: "platform" },
  ],
  ["postgresql://[::1]:6000/platform", { PGHOST: "::1", PGPORT: "6000", PGDATABASE: "platform" }],
])("%s reaches PostgreSQL's programs by variables", (url, variables) => {
  expect(libpq(url)).toEqual(variables);
});
