/** The conversions that a table's description makes, and what the database holds for each kind of field. */

import { expect, test } from "vitest";
import {
  custom,
  flag,
  group,
  json,
  list,
  number,
  parts,
  sealedJson,
  table,
  text,
} from "../../../../orchestrator/store/codec.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const context = (id: string) => `${id} secret`;
const things = table(
  {
    id: text("id"),
    kind: text("kind").as<"a" | "b">().initially("a"),
    isOpen: flag("is_open"),
    endedAt: number("ended_at").later(),
    internet: flag("internet").optional(),
    memory: flag("memory").later(false),
    metadata: json("metadata").as<Readonly<Record<string, string>>>(),
    names: list("names").as<readonly string[]>().initially([]),
    scopes: custom("scopes", { read: (stored) => stored.split(","), write: (value) => value.join(",") }),
    secret: sealedJson("secret", testSeal, context).as<{ readonly value: string }>().optional(),
    size: group({ bytes: number("size_bytes"), note: text("size_note").later() }),
    limits: parts({ cpu: number("max_cpu").later(), memory: number("max_memory").later() }),
  },
  { hash: text("hash") },
);
const NEW = {
  id: "t1",
  isOpen: true,
  internet: undefined,
  metadata: { a: "b" },
  scopes: ["x", "y"],
  hash: "h",
  secret: { value: "s" },
};

test("a new row has every column: what was given, what a new row begins with, and NULL for what comes later", () => {
  const { secret, ...row } = things.toRow(NEW);
  expect(row).toEqual({
    id: "t1",
    kind: "a",
    is_open: 1,
    ended_at: null,
    internet: null,
    memory: null,
    metadata: '{"a":"b"}',
    names: null,
    scopes: "x,y",
    size_bytes: null,
    size_note: null,
    max_cpu: null,
    max_memory: null,
    hash: "h",
  });
  expect(JSON.parse(testSeal.open(secret ?? "", context("t1")))).toEqual({ value: "s" });
});

test("a record has what its row was made from, and nothing of the hidden columns", () => {
  const { hash: _, ...shown } = NEW;
  const { endedAt, internet, size, ...record } = things.toRecord(things.toRow(NEW));
  expect(record).toEqual({ ...shown, internet: undefined, kind: "a", memory: false, names: [], limits: {} });
  expect([endedAt, internet, size]).toEqual([undefined, undefined, undefined]);
  expect(things.columns).not.toContain("hash");
});

test("a value that was sealed for one row does not open in another", () => {
  const row = { ...things.toRow(NEW), id: "t2" };
  expect(() => things.toRecord(row)).toThrow("does not open");
});

test("a change has the columns of the fields that it names; undefined changes nothing, and null takes a value away", () => {
  expect(things.toColumns({ isOpen: false, endedAt: 7, names: ["n"], kind: undefined })).toEqual({
    is_open: 0,
    ended_at: 7,
    names: '["n"]',
  });
  expect(things.toColumns({ endedAt: null, size: null })).toEqual({
    ended_at: null,
    size_bytes: null,
    size_note: null,
  });
  expect(things.toColumns({ size: { bytes: 5 } })).toEqual({ size_bytes: 5, size_note: null });
});

test("fields that a row has together are there when the first one is, and those that it has each by itself are not", () => {
  const row = things.toRow({ ...NEW, size: { bytes: 0 }, limits: { memory: 3 } });
  const { size, limits } = things.toRecord(row);
  expect(size).toStrictEqual({ bytes: 0 });
  expect(limits).toStrictEqual({ memory: 3 });
  expect(things.toRecord({ ...row, size_bytes: null, size_note: "left" }).size).toBeUndefined();
});
