/** Copies of the orchestrator's database, made and counted by the programs that own it, as the user whose it is. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { lastWords, type Said } from "../base/commands.ts";
import type { Instance } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import { serviceUser } from "../evidence/files.ts";
import { lookAtPrograms } from "../evidence/programs/programs.ts";

const LIMIT_MS = 3_600_000;

export function databasePath({ setting, places }: Instance): string {
  return setting("orchestrator", "SVC_DATABASE") ?? join(places.state, "orchestrator/svc.db");
}

/** Undefined: it is SQLite. */
export async function databaseUrl({ setting }: Instance): Promise<string | undefined> {
  const file = setting("orchestrator", "DATABASE_URL_FILE");
  return (
    setting("orchestrator", "DATABASE_URL") ?? (file === undefined ? undefined : (await readFile(file, "utf8")).trim())
  );
}

/** @param copy a new file in a directory of the orchestrator's user */
export async function copySqlite(machine: Machine, copy: string): Promise<void> {
  const said = await orchestrator(machine, ["--copy-database", copy], { SVC_DATABASE: databasePath(machine.instance) });
  if (said.status !== 0) throw new Error(`the database was not copied: ${lastWords(said)}`);
}

export interface Counted {
  readonly integrity: string;
  readonly counts: Readonly<Record<string, number>>;
}

/** @param place a SQLite file, or a URL */
export async function countRecords(machine: Machine, place: string): Promise<Counted> {
  const isUrl = /^postgres(ql)?:/.test(place);
  const said = await orchestrator(
    machine,
    ["--count-records", isUrl ? "-" : place],
    isUrl ? { DATABASE_URL: place } : {},
  );
  if (said.status !== 0) throw new Error(`the records were not counted: ${lastWords(said)}`);
  return JSON.parse(said.stdout) as Counted;
}

export interface MovedRecords {
  /** False: an earlier run had moved them. */
  readonly moved: boolean;
  readonly storeId?: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly audit: {
    readonly entries: number;
    readonly broken?: { readonly seq: number; readonly fault: string };
  };
}

/**
 * Moves the records of this machine's SQLite file into an empty PostgreSQL database. The file stays.
 * @throws when the orchestrator runs, the settings name PostgreSQL already, or the target has other records
 */
export async function moveToPostgres(machine: Machine, url: string): Promise<MovedRecords> {
  const { instance } = machine;
  if (!instance.programs.includes("orchestrator")) throw new Error("there is no orchestrator on this machine");
  if ((await databaseUrl(instance)) !== undefined) {
    throw new Error("the settings of this machine name a PostgreSQL database already (DATABASE_URL)");
  }
  const running = (await lookAtPrograms(machine)).find(({ program }) => program === "orchestrator");
  if (running?.pid !== undefined) {
    throw new Error("the orchestrator runs: stop it first (./scripts/service stop orchestrator)");
  }
  // The URL has a password, which no command line may hold.
  const env = { SVC_DATABASE: databasePath(instance), DATABASE_URL: url };
  const said = await orchestrator(machine, ["--move-to-postgres"], env);
  if (said.status !== 0) throw new Error(`nothing was moved: ${lastWords(said)}`);
  return JSON.parse(said.stdout) as MovedRecords;
}

/** As the orchestrator's user: root would leave files that the orchestrator cannot write. */
function orchestrator({ run, instance }: Machine, args: readonly string[], env: Record<string, string>): Promise<Said> {
  const { app } = instance.places;
  return run(join(app, "node"), [join(app, "orchestrator.js"), ...args], { limitMs: LIMIT_MS, env, ...serviceUser() });
}

export async function dumpPostgres({ run }: Pick<Machine, "run">, url: string, file: string): Promise<void> {
  const said = await run("pg_dump", ["--format=custom", "--no-owner", "--file", file], {
    limitMs: LIMIT_MS,
    env: libpq(url),
  });
  if (said.status !== 0) throw new Error(`pg_dump: ${lastWords(said)} (it must be of the server's version or newer)`);
}

/** Adds up the lines between the head of a table's records and their end; a record is one line there. */
const COUNT_LINES = String.raw`
inside && $0 == "\\." { inside = 0; next }
inside { counts[table]++; next }
/^COPY .* FROM stdin;$/ { table = $2; sub(/^[^.]*\./, "", table); gsub(/"/, "", table); counts[table] += 0; inside = 1 }
END { for (table in counts) print table, counts[table] }`;

/** The records that a dump has, of its own moment: a count of the database is of a later one. It is read to its end. */
export async function countDump({ run }: Pick<Machine, "run">, file: string): Promise<Counted["counts"]> {
  const pipe = 'pg_restore --data-only --file=- "$1" | awk "$2"';
  const said = await run("bash", ["-o", "pipefail", "-c", pipe, "-", file, COUNT_LINES], { limitMs: LIMIT_MS });
  if (said.status !== 0) throw new Error(`the dump cannot be read: ${lastWords(said)}`);
  const lines = said.stdout.split("\n").filter((line) => line !== "");
  return Object.fromEntries(
    lines
      .toSorted()
      .map((line) => line.split(" "))
      .map(([table, count]) => [table, Number(count)]),
  );
}

export async function restorePostgres({ run }: Pick<Machine, "run">, url: string, file: string): Promise<void> {
  const how = ["--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error"];
  const env = libpq(url);
  const said = await run("pg_restore", [...how, "--dbname", env["PGDATABASE"] ?? "postgres", file], {
    limitMs: LIMIT_MS,
    env,
  });
  if (said.status !== 0) throw new Error(`pg_restore: ${lastWords(said)}`);
}

/** A URL as the variables of PostgreSQL's programs, because every user of the machine can read command lines. Pure. */
export function libpq(url: string): Readonly<Record<string, string>> {
  const [, user, password, hosts = "", database = "", query = ""] =
    /^postgres(?:ql)?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url) ?? [];
  const each = hosts.split(",").map((host) => /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(host) ?? []);
  const parameters = new URLSearchParams(query);
  const named = {
    PGHOST: parameters.get("host") ?? each.map(([, host = ""]) => host.replace(/^\[(.*)\]$/, "$1")).join(","),
    PGPORT: each.map(([, , port = "5432"]) => port).join(","),
    PGUSER: decodeURIComponent(user ?? ""),
    PGPASSWORD: decodeURIComponent(password ?? ""),
    PGDATABASE: decodeURIComponent(database),
    PGSSLMODE: parameters.get("sslmode") ?? "",
    PGSSLROOTCERT: parameters.get("sslrootcert") ?? "",
    PGTARGETSESSIONATTRS: each.length > 1 ? "read-write" : "",
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== ""));
}
