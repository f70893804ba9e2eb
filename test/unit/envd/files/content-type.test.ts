import { expect, test } from "vitest";
import { contentDisposition, contentType } from "../../../../envd/files/content-type.ts";

test.each([
  ["/a/x.txt", 'inline; filename="x.txt"'],
  ["/a/ü.txt", "inline; filename=\"_.txt\"; filename*=UTF-8''%C3%BC.txt"],
  ['/a/q"u\\o.txt', "inline; filename=\"q_u_o.txt\"; filename*=UTF-8''q%22u%5Co.txt"],
  ["/a/new\nline", "inline; filename=\"new_line\"; filename*=UTF-8''new%0Aline"],
])("the file %j is downloaded with the disposition %s", (path, expected) => {
  expect(contentDisposition(path)).toBe(expected);
});

test.each([
  ["/a/x.JSON", "application/json"],
  ["/a/x", "application/octet-stream"],
  ["/a/.bashrc", "application/octet-stream"],
])("the file %s has the type %s", (path, expected) => {
  expect(contentType(path)).toBe(expected);
});
