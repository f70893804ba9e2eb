import { expect, test } from "vitest";
import { metadataOf } from "../../../../envd/files/metadata-headers.ts";

test("keys of metadata are lower-cased, other headers are ignored, and the first of two values wins", () => {
  const headers = ["Host", "x", "X-Metadata-Author", "me", "x-metadata-author", "you", "X-METADATA-Kind", "a b"];
  expect(metadataOf(headers)).toEqual({ author: "me", kind: "a b" });
});

test("the longest key of metadata has 246 bytes", () => {
  expect(Object.keys(metadataOf([`X-Metadata-${"k".repeat(246)}`, "v"]))).toHaveLength(1);
  expect(() => metadataOf([`X-Metadata-${"k".repeat(247)}`, "v"])).toThrow("longer than 246");
});

test("metadata have 4096 bytes at most, prefixes included", () => {
  const room = 4096 - "user.e2b.".length - 1;
  expect(metadataOf(["X-Metadata-a", "v".repeat(room)])).toEqual({ a: "v".repeat(room) });
  expect(() => metadataOf(["X-Metadata-a", "v".repeat(room + 1)])).toThrow("larger than 4096");
});

test.each(["ü", "tab\there", "\x7f"])("a value %j is refused", (value) => {
  expect(() => metadataOf(["X-Metadata-a", value])).toThrow("not printable US-ASCII");
});
