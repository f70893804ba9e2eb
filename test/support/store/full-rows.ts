/** Rows of odd values in every table of a SQLite file with the schema, so that whoever copies them meets each kind of value in each column. */

import SQLite from "better-sqlite3";

export interface Column {
  readonly name: string;
  /** As the schema names it: text, bigint, integer, bytea. */
  readonly type: string;
  readonly isNullable: boolean;
}

/** Tables with one row at most: the column that is 1 in it. */
const SINGLE: Readonly<Record<string, string>> = { store_identity: "one", event_order: "id", audit_anchor: "id" };
const ROWS = [0, 1, 2, 3] as const;
/** The row whose columns are null where they may be. */
const OF_NULLS = 1;

/** Four values of each type, all different, because a column may be a key. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  text: [
    "",
    "plain",
    "t\u00e9st \u{1f98a} \u202e\u200b\u{10ffff}\r\n\t'single' \"double\" \\ %_ $1 ? --",
    '{"number":1.5e300,"null":null,"true":true,"nul":"\\u0000","deep":[{"a":[]}]}',
  ],
  bigint: [0, -1, Number.MAX_SAFE_INTEGER, 1_790_000_000_123],
  integer: [0, 1, 2_147_483_647, -2_147_483_648],
  bytea: [
    Buffer.alloc(0),
    Buffer.from([0]),
    Buffer.from(Array.from({ length: 256 }, (_, n) => n)),
    Buffer.alloc(70_000, 255),
  ],
};

/** Tables of the platform with their columns; the migrator's own are not among them. */
export function tablesOf(path: string): ReadonlyMap<string, readonly Column[]> {
  return withDatabase(path, (database) => {
    const names = database
      .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name")
      .pluck()
      .all() as string[];
    return new Map(
      names.filter((name) => !name.startsWith("kysely_")).map((name) => [name, columnsOf(database, name)]),
    );
  });
}

/** Fills each table that has no row yet. A text of a megabyte is in a column without an index. */
export function fillTables(path: string): void {
  const tables = tablesOf(path);
  withDatabase(path, (database) => {
    // In any order; what is left without its other end is found at the end.
    database.pragma("foreign_keys = off");
    for (const [table, columns] of tables) {
      if (database.prepare(`select 1 from "${table}" limit 1`).get() !== undefined) continue;
      const names = columns.map(({ name }) => `"${name}"`).join(", ");
      const insert = database.prepare(
        `insert into "${table}" (${names}) values (${columns.map(() => "?").join(", ")})`,
      );
      for (const row of SINGLE[table] === undefined ? ROWS : [2])
        insert.run(columns.map((column) => valueOf(table, column, row)));
    }
    database.prepare("update builds set body = ? where body = ?").run("\u00fc".repeat(500_000), VALUES["text"]?.[2]);
    const loose = database.pragma("foreign_key_check");
    if (Array.isArray(loose) && loose.length > 0)
      throw new Error(`rows name others that are not there: ${JSON.stringify(loose)}`);
  });
}

/** Every table's rows in an order of their own, with the kind of each value: null, text, number or bytes. */
export function canonical(columns: readonly Column[], rows: readonly Record<string, unknown>[]): string[] {
  return rows
    .map((row) => columns.map((column) => `${column.name}: ${cell(column, row[column.name])}`).join("\n"))
    .sort();
}

function cell({ type }: Column, value: unknown): string {
  if (value === null) return "null";
  if (type === "bytea")
    return Buffer.isBuffer(value) ? `bytes ${value.toString("hex")}` : `no bytes but ${typeof value}`;
  // PostgreSQL's client gives a bigint as text.
  if (type !== "text") {
    const text = typeof value === "number" || typeof value === "string" ? String(value) : JSON.stringify(value);
    return /^-?\d+$/.test(text) ? `number ${text}` : `no number but ${text}`;
  }
  return typeof value === "string" ? `text ${JSON.stringify(value)}` : `no text but ${typeof value}`;
}

/** A foreign key names the row of the same number in the other table, which has the same value. */
function valueOf(table: string, { name, type, isNullable }: Column, row: number): unknown {
  if (SINGLE[table] === name) return 1;
  if (isNullable && row === OF_NULLS) return null;
  const values = VALUES[type];
  if (values === undefined) throw new Error(`${table}.${name} is of the type ${type}, for which there are no values`);
  return values[row];
}

function columnsOf(database: SQLite.Database, table: string): readonly Column[] {
  const found = database.pragma(`table_info("${table}")`) as {
    readonly name: string;
    readonly type: string;
    readonly notnull: number;
    readonly pk: number;
  }[];
  return found.map(({ name, type, notnull, pk }) => ({
    name,
    type: type.toLowerCase(),
    isNullable: notnull === 0 && pk === 0,
  }));
}

function withDatabase<T>(path: string, work: (database: SQLite.Database) => T): T {
  const database = new SQLite(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}
