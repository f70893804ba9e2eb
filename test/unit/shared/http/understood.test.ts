/** What is left of request bodies: nulls of optional fields and ignored fields are not. */

import { Type } from "typebox";
import { expect, test } from "vitest";
import { map, nullable } from "../../../../shared/api/common.ts";
import { understood } from "../../../../shared/http/fields/understood.ts";

const inner = Type.Object({ need: Type.String(), may: Type.Optional(Type.String()) });
const schema = Type.Object({
  need: Type.String(),
  may: Type.Optional(Type.Integer()),
  word: Type.Optional(Type.Enum(["a", "b"])),
  inner: Type.Optional(inner),
  list: Type.Optional(Type.Array(inner)),
  map: Type.Optional(map(inner, { names: Type.String(), maxProperties: 9 })),
  clearable: Type.Optional(nullable(inner)),
  either: Type.Optional(Type.Union([inner, Type.Object({ other: Type.String() })])),
});

test.each([
  ["an optional field", { need: "x", may: null, word: null, inner: null, list: null, map: null }, { need: "x" }],
  ["a field of an object inside", { inner: { need: "x", may: null } }, { inner: { need: "x" } }],
  ["a field of an object in a list", { list: [{ may: null }, { may: "y" }] }, { list: [{}, { may: "y" }] }],
  ["a field of an object in a map", { map: { a: { may: null } } }, { map: { a: {} } }],
  ["a field of an object that may be null itself", { clearable: { may: null } }, { clearable: {} }],
])("the null of %s is removed", (_what, body, expected) => {
  expect(understood(schema, body)).toEqual(expected);
});

test.each([
  ["a required field", { need: null, inner: { need: null } }],
  ["an item of a list", { list: [null] }],
  ["an entry of a map", { map: { a: null } }],
  ["a field that may be null", { clearable: null }],
  ["a field that the schema does not know", { constructor: null, unknown: null }],
  ["an object that may have one of several shapes", { either: { need: "x", may: null } }],
  ["the body itself", null],
])("the null of %s stays", (_what, body) => {
  expect(understood(schema, body)).toEqual(body);
});

test("a value of the wrong type is left for the check of the schema", () => {
  for (const body of ["text", 5, [], { inner: "text", list: {}, map: [] }]) {
    expect(understood(schema, body)).toEqual(body);
  }
});
