/** `svc migrate sqlite-to-postgres`: the records of the platform go into a PostgreSQL database, once. */

import { databasePath, moveToPostgres } from "../../../machine/backup/database.ts";
import { readValue } from "../../api/value.ts";
import type { Action } from "../../definition.ts";
import { wordsOf } from "../../installed.ts";
import { hereAsRoot, sayInstance } from "./here.ts";

export const sqliteToPostgres: Action = async (context, _args, { file }) => {
  const machine = hereAsRoot(context);
  sayInstance(context, machine);
  const url = await readValue(context, file, "URL of the PostgreSQL database");
  const { moved, counts, audit } = await moveToPostgres(machine, url);
  const records = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const tables = Object.keys(counts).length;
  await context.out.line(
    `${moved ? "moved" : "an earlier run has moved"} ${records} records of ${tables} tables; every count is the same on both sides`,
    audit.broken === undefined
      ? `the audit log is whole: ${audit.entries} entries`
      : `the audit log was broken before, and was moved as it is: entry ${audit.broken.seq} is ${audit.broken.fault}`,
  );
  const next = [
    "Next:",
    "  1. put DATABASE_URL=postgresql://… , or DATABASE_URL_FILE with the path of a file that has it, into .svc/config.env",
    "  2. ./scripts/up --change-settings",
    `  3. ./scripts/node status: each node serves the database; then put ${databasePath(machine.instance)} away, and start no orchestrator on it any more`,
  ];
  context.out.note(wordsOf(context.env)(next.join("\n")));
};
