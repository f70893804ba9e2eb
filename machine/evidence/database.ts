/** Whether the orchestrator's database can be used, also when the orchestrator does not run. */

import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { lastWords } from "../base/commands.ts";
import type { Machine } from "../base/this-machine.ts";
import type { DatabaseSeen, ProgramSeen } from "./evidence.ts";
import { serviceUser } from "./files.ts";

const SQLITE = "SQLite format 3\0";

export async function lookAtDatabase(
  machine: Machine,
  programs: readonly ProgramSeen[] | undefined,
): Promise<DatabaseSeen | undefined> {
  const { instance } = machine;
  if (!instance.programs.includes("orchestrator")) return undefined;
  const orchestrator = programs?.find(({ program }) => program === "orchestrator");
  // Its own word counts: it holds the database, and tries it every few seconds.
  const said = orchestrator?.failing["database"]?.replace(/^failed: /, "");
  const url = instance.setting("orchestrator", "DATABASE_URL") ?? instance.setting("orchestrator", "DATABASE_URL_FILE");
  if (url !== undefined) {
    return { kind: "PostgreSQL", path: "", problem: said, sort: said === undefined ? undefined : "silent" };
  }
  const path = instance.setting("orchestrator", "SVC_DATABASE") ?? join(instance.places.state, "orchestrator/svc.db");
  const base = { kind: "SQLite", path } as const;
  if (said !== undefined) return { ...base, problem: said, sort: /read-?only/i.test(said) ? "read-only" : "silent" };
  if (!existsSync(path)) {
    // A platform that has never run has none.
    const isNew = !existsSync(join(instance.places.config, "orchestrator.env"));
    return isNew ? undefined : { ...base, problem: "the file is not there", sort: "missing" };
  }
  if (!looksWhole(path)) return { ...base, problem: "the file is no SQLite database", sort: "damaged" };
  const refused = await refusesWrites(machine, path);
  return refused === undefined
    ? { ...base, problem: undefined, sort: undefined }
    : { ...base, problem: refused, sort: "read-only" };
}

function looksWhole(path: string): boolean {
  if (statSync(path).size === 0) return true;
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(SQLITE.length);
    readSync(file, head, 0, head.length, 0);
    return head.toString("latin1") === SQLITE;
  } finally {
    closeSync(file);
  }
}

/** As the orchestrator's user, because root may write anything. Opens for appending and writes nothing. */
async function refusesWrites({ run }: Machine, path: string): Promise<string | undefined> {
  const user = serviceUser();
  if (user === undefined) return undefined;
  const asUser = ["--reuid", String(user.uid), "--regid", String(user.gid), "--clear-groups"];
  const said = await run("setpriv", [...asUser, "sh", "-c", ': >>"$1" && [ -w "$(dirname "$1")" ]', "sh", path]);
  if (said.status === 0 || said.problem !== undefined) return undefined;
  return `the orchestrator cannot write it: ${lastWords(said)}`;
}
