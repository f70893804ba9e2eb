/**
 * A table described once, field by field: the types of its rows and of its records follow, and so do both conversions.
 * What the database holds was written by this program, so reading checks nothing. Pure.
 */

import type { Seal } from "../../shared/program/sealing/seal.ts";

/** `given`: whoever adds a row says it, also that it has no value. `later`: a new row begins without, or with `initially`. */
type Begins = "given" | "later";

type Writable = Record<string, unknown>;

/** A field of a record, with the columns that it is stored in. */
interface Field<Columns extends object, Value, B extends Begins = Begins> {
  readonly begins: B;
  readonly columns: readonly string[];
  read(row: Columns): Value;
  /** @param id of the row, for what is sealed for it alone */
  write(row: Writable, value: Value | undefined, id: string): void;
}

type Fields = Readonly<Record<string, Field<object, unknown>>>;

/** A field in one column. */
export interface Column<Name extends string, Stored, Value, B extends Begins = "given">
  extends Field<{ readonly [N in Name]: Stored }, Value, B> {
  /** Says which values there are. */
  as<T extends Value>(): Column<Name, Value extends Stored ? T : Stored, T, B>;
  /** NULL where there is no value. */
  optional(): Column<Name, Stored | null, Value | undefined>;
  /** As `optional`, and new rows have none. @param none what NULL is read as; absent: as no value */
  later(): Column<Name, Stored | null, Value | undefined, "later">;
  later(none: Value): Column<Name, Stored | null, Value, "later">;
  /** The value of a new row that is given none. */
  initially(value: Value): Column<Name, Stored, Value, "later">;
}

type ColumnsIn<F> = F extends Field<infer C, unknown> ? C : never;
type ValueIn<F> = F extends Field<object, infer V> ? V : never;
type Together<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type Flat<T> = { readonly [K in keyof T]: T[K] };
type Late<F extends Fields> = { [K in keyof F]: F[K] extends Field<object, unknown, "later"> ? K : never }[keyof F];
type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

type ColumnsOf<F extends Fields> = Flat<Together<ColumnsIn<F[keyof F]>>>;
type ValuesOf<F extends Fields> = { readonly [K in keyof F]: ValueIn<F[K]> };
type NewOf<F extends Fields> = Flat<
  { readonly [K in Exclude<keyof F, Late<F>>]: ValueIn<F[K]> } & { readonly [K in Late<F>]?: ValueIn<F[K]> | undefined }
>;
/** Undefined: unchanged; null: the field has no value any more. */
type ChangeOf<F extends Fields> = {
  readonly [K in keyof F]?: (undefined extends ValueIn<F[K]> ? ValueIn<F[K]> | null : ValueIn<F[K]>) | undefined;
};

/** The record of a table's rows. */
export type RecordOf<T> = T extends Table<infer F, infer _> ? ValuesOf<F> : never;
/** A whole row, with the columns that no record shows. */
export type RowOf<T> = T extends Table<infer F, infer H> ? ColumnsOf<F & H> : never;
/** What a new row is made from. */
export type NewRecordOf<T> = T extends Table<infer F, infer H> ? NewOf<F & H> : never;
export type ChangeOfTable<T> = T extends Table<infer F, infer H> ? ChangeOf<F & H> : never;

export interface Table<F extends Fields, H extends Fields = F> {
  /** The columns that a record is read from. */
  readonly columns: readonly (keyof ColumnsOf<F> & string)[];
  readonly toRecord: (row: ColumnsOf<F>) => ValuesOf<F>;
  readonly toRow: (record: NewOf<F & H>) => ColumnsOf<F & H>;
  /** The columns of a change. @param id of the row, where something in it is sealed */
  readonly toColumns: (change: ChangeOf<F & H>, id?: string) => Partial<ColumnsOf<F & H>>;
  /** Reads these fields only: for lists, which show little of many rows. */
  readonly only: <K extends keyof F & string>(...names: readonly K[]) => Part<Pick<F, K>>;
}

/** What reads some fields of a table's rows. */
interface Part<F extends Fields> {
  readonly columns: readonly (keyof ColumnsOf<F> & string)[];
  readonly toRecord: (row: ColumnsOf<F>) => ValuesOf<F>;
}

/** @param hidden fields that are written, and read by no record */
export function table<F extends Fields, H extends Fields = F>(fields: F, hidden?: H): Table<F, H> {
  const all = Object.entries<Field<object, unknown>>({ ...fields, ...hidden });
  const blankRow = blank(all.flatMap(([, field]) => field.columns));
  return {
    ...reader(fields),
    only: <K extends keyof F & string>(...names: readonly K[]) =>
      reader(Object.fromEntries(names.map((name) => [name, fields[name]])) as unknown as Pick<F, K>),
    toRow(record) {
      const values = record as Readonly<Writable>;
      const row = { ...blankRow };
      for (const [name, field] of all) field.write(row, values[name], values.id as string);
      return row as ColumnsOf<F & H>;
    },
    toColumns(change, id = "") {
      const values = change as Readonly<Writable>;
      const row: Writable = {};
      for (const [name, field] of all) {
        const value = values[name];
        if (value !== undefined) field.write(row, value ?? undefined, id);
      }
      return row as Partial<ColumnsOf<F & H>>;
    },
  };
}

function reader<F extends Fields>(fields: F): Part<F> {
  const shown = Object.entries(fields);
  const blankRecord = blank(shown.map(([name]) => name));
  return {
    columns: shown.flatMap(([, field]) => field.columns) as unknown as Part<F>["columns"],
    toRecord(row) {
      const record = { ...blankRecord };
      for (const [name, field] of shown) record[name] = field.read(row);
      return record as ValuesOf<F>;
    },
  };
}

/** To be copied and filled: an object that gets its many keys one by one is several times slower, to make and to read. */
function blank(keys: readonly string[]): Writable {
  return JSON.parse(`{${keys.map((key) => `${JSON.stringify(key)}:null`).join(",")}}`) as Writable;
}

/** Text, and what is written as it is. */
export const text = <N extends string>(name: N) => column<N, string, string>(name, asItIs);

/** Numbers, and times in unix milliseconds. */
export const number = <N extends string>(name: N) => column<N, number, number>(name, asItIs);

/** True and false as 1 and 0. */
export const flag = <N extends string>(name: N) =>
  column<N, number, boolean>(name, { read: (stored) => stored === 1, write: Number });

/** Any value, as JSON. */
export const json = <N extends string>(name: N) =>
  column<N, string, unknown>(name, { read: (stored) => JSON.parse(stored as string) as unknown, write: toJson });

/** A list as JSON; NULL where it is empty. */
export const list = <N extends string>(name: N) =>
  column<N, string | null, readonly unknown[]>(name, {
    read: (stored) => (stored === null ? [] : (JSON.parse(stored as string) as unknown[])),
    write: (value) => ((value as readonly unknown[]).length === 0 ? null : toJson(value)),
  });

/** Text that a field writes in its own way. */
export const custom = <N extends string, V>(
  name: N,
  { read, write }: { readonly read: (stored: string) => V; readonly write: (value: V) => string },
) => column<N, string, V>(name, { read: (stored) => read(stored as string), write: (value) => write(value as V) });

/** JSON that only this program reads. @param contextOf the context that seals it for one row, by the row's id */
export const sealedJson = <N extends string>(name: N, sealing: Seal, contextOf: (id: string) => string) =>
  column<N, string, unknown>(name, {
    read: (stored, { id }) => JSON.parse(sealing.open(stored as string, contextOf(id as string))) as unknown,
    write: (value, id) => sealing.close(toJson(value), contextOf(id)),
  });

/** Several fields that a row has together or not at all; the first one's column says which. New rows have none. */
export interface Group<Columns extends object, Value> extends Field<Columns, Value, "later"> {
  as<T>(): Group<Columns, undefined extends Value ? T | undefined : T>;
}

export function group<F extends Fields>(fields: F): Group<Nullable<ColumnsOf<F>>, NewOf<F> | undefined> {
  const all = parts(fields);
  const decides = all.columns[0] ?? "";
  const made = {
    ...all,
    read: (row: Readonly<Writable>) => (row[decides] === null ? undefined : all.read(row as never)),
    as: () => made,
  };
  return made as unknown as Group<Nullable<ColumnsOf<F>>, NewOf<F> | undefined>;
}

/** Several fields that a row has each by itself, as one object of those that it has. */
export function parts<F extends Fields>(fields: F): Group<ColumnsOf<F>, NewOf<F>> {
  const entries = Object.entries(fields);
  const columns = entries.flatMap(([, field]) => field.columns);
  const made = {
    begins: "later",
    columns,
    read(row: Readonly<Writable>) {
      const value: Writable = {};
      for (const [name, field] of entries) {
        const part = field.read(row);
        if (part !== undefined) value[name] = part;
      }
      return value;
    },
    write(row: Writable, value: Readonly<Writable> | undefined, id: string) {
      if (value === undefined) for (const name of columns) row[name] = null;
      else for (const [name, field] of entries) field.write(row, value[name], id);
    },
    as: () => made,
  };
  return made as unknown as Group<ColumnsOf<F>, NewOf<F>>;
}

interface Conversion {
  readonly read: (stored: unknown, row: Readonly<Writable>) => unknown;
  readonly write: (value: unknown, id: string) => unknown;
}

const asItIs: Conversion = { read: (stored) => stored, write: (value) => value };

function orNull({ read, write }: Conversion, none?: unknown): Conversion {
  return {
    read: (stored, row) => (stored === null ? none : read(stored, row)),
    write: (value, id) => (value === undefined ? null : write(value, id)),
  };
}

function toJson(value: unknown): string {
  return JSON.stringify(value);
}

function column<N extends string, Stored, Value>(
  name: N,
  conversion: Conversion,
  { begins, initial }: { readonly begins: Begins; readonly initial?: unknown } = { begins: "given" },
): Column<N, Stored, Value> {
  const { read, write } = conversion;
  const made = {
    begins,
    columns: [name],
    read: (row: Readonly<Writable>) => read(row[name], row),
    write(row: Writable, value: unknown, id: string) {
      row[name] = write(value ?? initial, id);
    },
    as: () => made,
    optional: () => column(name, orNull(conversion)),
    later: (none?: Value) => column(name, orNull(conversion, none), { begins: "later" }),
    initially: (value: Value) => column(name, conversion, { begins: "later", initial: value }),
  };
  return made as unknown as Column<N, Stored, Value>;
}
