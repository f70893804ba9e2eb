import { array, assert, constantFrom, oneof, property, uint8Array } from "fast-check";
import { expect, test } from "vitest";
import { queryOf } from "../../../../envd/http/query.ts";
import { canonicalPath, nameOf, onDisk, writtenBy } from "../../../../envd/system/file-names.ts";

const bytesOf = (path: string) => Buffer.from(onDisk(path));
const bytes = (text: string) => Buffer.from(text, "latin1");

test.each([
  ["plain", "plain"],
  ["\xc3\xbc", "ü"],
  ["caf\xe9", "caf\uFFFDe9"],
  ["\xff\xfe", "\uFFFDff\uFFFDfe"],
  // A sequence that is cut short, one that is too long for its character, and half of a pair of surrogates.
  ["\xe2\x82", "\uFFFDe2\uFFFD82"],
  ["\xc0\xaf", "\uFFFDc0\uFFFDaf"],
  ["\xed\xa0\x80", "\uFFFDed\uFFFDa0\uFFFD80"],
  ["d\xe9/\xc3\xbc/\xe9", "d\uFFFDe9/ü/\uFFFDe9"],
  // U+FFFD itself is a character like others, unless it could be taken for the form of a byte.
  ["\xef\xbf\xbd", "\uFFFD"],
  ["\xef\xbf\xbde9", "\uFFFDef\uFFFDbf\uFFFDbde9"],
])("the bytes %j are written %j, and lead back", (raw, written) => {
  expect(nameOf(bytes(raw))).toBe(written);
  expect(bytesOf(written)).toEqual(bytes(raw));
});

test("each name has one written form, which leads to that name again", () => {
  const hostile = oneof(
    uint8Array({ minLength: 1 }),
    array(constantFrom("\xef\xbf\xbd", "e", "9", "\xe9", "/", "\xc3\xbc", "\xed\xa0\x80")).map((p) =>
      bytes(p.join("")),
    ),
  );
  assert(
    property(hostile, (raw) => {
      const name = Buffer.from(raw);
      const written = nameOf(name);
      expect(bytesOf(written)).toEqual(name);
      expect(canonicalPath(written)).toBe(written);
    }),
    { numRuns: 2_000 },
  );
});

test("two texts of one form name two files", () => {
  const text = array(constantFrom("\uFFFD", "e9", "ff", "x", "ü")).map((parts) => parts.join(""));
  assert(
    property(text, text, (one, other) => {
      if (canonicalPath(one) === canonicalPath(other)) expect(bytesOf(one)).toEqual(bytesOf(other));
      else expect(bytesOf(one)).not.toEqual(bytesOf(other));
    }),
  );
});

test("what a client writes as text is text, also where it looks like the form of bytes", () => {
  expect(writtenBy(Buffer.from("\uFFFDe9"))).toBe("\uFFFDe9");
  expect(writtenBy(bytes("a\xe9"))).toBe("a\uFFFDe9");
});

test.each([
  ["path=a%E9b&username=user", "a\uFFFDe9b"],
  ["path=%C3%BC", "ü"],
  ["path=a+b%2Bc", "a b+c"],
  ["path=%EF%BF%BDe9", "\uFFFDe9"],
  ["path=100%&x=%ff", "100%"],
  ["path=%EF%BF%BD", "\uFFFD"],
])("the query %j names the path %j", (search, path) => {
  expect(queryOf(search).get("path")).toBe(path);
});
