import { describe, expect, test } from "vitest";
import { dataBytes, readManifest, type TreeManifest, writeManifest } from "../../../../agent/blobs/trees/manifest.ts";

const A = `${"a".repeat(64)}.1`;
const B = `${"b".repeat(64)}.2`;
const REF = `${"c".repeat(64)}.3`;

const manifest: TreeManifest = {
  format: 1,
  kind: "memory",
  origins: { kernel: "6.1", architecture: "x86_64", cpuFlags: "sse2", criu: "4.2", runc: "1.1", envd: "0.6.13" },
  blobs: [
    [A, 100],
    [B, 50],
  ],
  entries: [
    { path: "", type: "directory", mode: 0o700 },
    { path: "images", type: "directory", mode: 0o755 },
    {
      path: "images/pages",
      type: "file",
      mode: 0o600,
      size: 1_000,
      pieces: [
        [0, 100, 0, 0],
        [500, 10, 1, 40],
      ],
    },
    { path: "link", type: "link", target: "images" },
  ],
};

const [root, images, pages, link] = manifest.entries;
const file = pages as Extract<typeof pages, { type: "file" }>;
const read = (content: unknown) => readManifest(REF, Buffer.from(JSON.stringify(content)));

test("a manifest is read as it was written, and the same one always has the same bytes", () => {
  const written = writeManifest(manifest);
  expect(readManifest(REF, written)).toEqual(manifest);
  expect(writeManifest(readManifest(REF, written))).toEqual(written);
  expect(dataBytes(manifest)).toBe(110);
});

describe("a manifest is damaged", () => {
  const withEntries = (...entries: unknown[]) => ({ ...manifest, entries });
  const withPieces = (...pieces: unknown[]) => withEntries(root, images, { ...file, pieces });
  const renamed = (path: string) => withEntries(root, images, { ...file, path });

  test.each([
    { because: "it is of another kind", content: { ...manifest, kind: "other" } },
    { because: "a blob has no reference", content: { ...manifest, blobs: [["../x", 100]] } },
    { because: "it has no entries", content: withEntries() },
    { because: "it begins with another entry than its root", content: withEntries(images, root) },
    { because: "its root is a link", content: withEntries({ ...link, path: "" }) },
    { because: "its root is a file with others in it", content: withEntries({ ...file, path: "" }, images) },
    { because: "a path leads out of it", content: renamed("../pages") },
    { because: "a path leads out of a directory of it", content: renamed("images/..") },
    { because: "a path is absolute", content: renamed("/pages") },
    { because: "a path ends with a slash", content: renamed("images/") },
    { because: "a path holds a zero byte", content: renamed("images/a\0b") },
    {
      because: "a path goes through a file",
      content: withEntries(root, images, file, { ...file, path: "images/pages/x" }),
    },
    {
      because: "a path goes through a link",
      content: withEntries(root, images, link, { ...file, path: "link/pages" }),
    },
    { because: "a path is in a directory that it does not have", content: renamed("other/pages") },
    { because: "a directory comes after what is in it", content: withEntries(root, file, images) },
    { because: "a path is there twice", content: withEntries(root, images, file, file) },
    { because: "a mode has more than permissions", content: withEntries(root, { ...images, mode: 0o4755 }) },
    { because: "a piece is of a blob that it does not have", content: withPieces([0, 10, 2, 0]) },
    { because: "a piece is past the end of its blob", content: withPieces([0, 10, 1, 41]) },
    { because: "a piece is past the end of its file", content: withPieces([991, 10, 0, 0]) },
    { because: "a piece is empty", content: withPieces([0, 0, 0, 0]) },
    { because: "two pieces overlap", content: withPieces([0, 10, 0, 0], [9, 10, 1, 0]) },
    { because: "pieces are out of order", content: withPieces([20, 10, 0, 0], [0, 10, 1, 0]) },
    { because: "a piece begins before its file", content: withPieces([-1, 10, 0, 0]) },
  ])("when $because", ({ content }) => {
    expect(() => read(content)).toThrow(expect.objectContaining({ fault: "damaged" }) as Error);
  });

  test("when it is no JSON", () => {
    expect(() => readManifest(REF, Buffer.from("{"))).toThrow(`the manifest ${REF} is damaged: it is not readable`);
  });
});

test("a manifest of a later version is unreadable, and says of which version it is", () => {
  expect(() => read({ ...manifest, format: 2 })).toThrow(
    expect.objectContaining({
      fault: "unreadable",
      message: `the manifest ${REF} has format 2, and this version reads 1`,
    }) as Error,
  );
});
