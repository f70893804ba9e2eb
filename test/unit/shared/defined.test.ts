import { expect, expectTypeOf, test } from "vitest";
import { defined } from "../../../shared/defined.ts";

test("defined leaves out the fields that are undefined, and keeps null, false, zero and empty text", () => {
  const fields = { a: undefined, b: null, c: false, d: 0, e: "" };
  expect(Object.entries(defined(fields))).toEqual([
    ["b", null],
    ["c", false],
    ["d", 0],
    ["e", ""],
  ]);
});

test("a field that may be undefined becomes an optional field, and the others stay required", () => {
  const fields: { readonly sure: number; readonly perhaps: string | undefined } = { sure: 1, perhaps: undefined };
  const given = defined(fields);
  expectTypeOf(given.sure).toEqualTypeOf<number>();
  const taken: { readonly sure: number; readonly perhaps?: string } = given;
  expect(Object.keys(taken)).toEqual(["sure"]);
});
