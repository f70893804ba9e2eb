/**
 * Layers of uploaded images: the node refuses a layer that Docker would unpack to too much, or read otherwise than the node
 * reads it.
 */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLayerEntries } from "../../../../agent/builds/images/layer-entries.ts";
import { tarOf } from "../../../support/images/tar.ts";

const run = promisify(execFile);
const BLOCK = 512;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-layer-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Reads the layer in pieces of `piece` bytes. */
function problemOf(layer: Buffer, piece = layer.length): string | undefined {
  const entries = createLayerEntries();
  for (let at = 0; at < layer.length; at += piece) entries.push(layer.subarray(at, at + piece));
  return entries.problem;
}

async function tarred(...options: string[]): Promise<Buffer> {
  const { stdout } = await run("tar", ["-C", directory, ...options, "-cf", "-", "."], {
    encoding: "buffer",
    maxBuffer: 2 ** 26,
  });
  return stdout;
}

test.each(["gnu", "oldgnu", "pax", "ustar"])(
  "an archive in the format %s of files, directories, links and long names is passed, in pieces of any size",
  async (format) => {
    const long = join("d".repeat(90), "e".repeat(format === "ustar" ? 90 : 200));
    await mkdir(join(directory, "d".repeat(90)));
    await writeFile(join(directory, long), "x".repeat(1_500));
    await writeFile(join(directory, "file"), Buffer.alloc(3_000, 1));
    await symlink("file", join(directory, "link"));
    await run("ln", [join(directory, "file"), join(directory, "another")]);
    await run("mkfifo", [join(directory, "pipe")]);
    const layer = await tarred(`--format=${format}`);
    for (const piece of [1, 511, 512, 513, 100_000]) expect(problemOf(layer, piece)).toBeUndefined();
  },
);

test.each(["gnu", "oldgnu", "pax"])(
  "an archive in the format %s is refused by the name of a sparse file in it, in pieces of any size",
  async (format) => {
    await writeFile(join(directory, "first"), "content");
    await writeFile(join(directory, "hole.img"), "x");
    await truncate(join(directory, "hole.img"), 4 * 1024 ** 3);
    const layer = await tarred("-S", `--format=${format}`);
    expect(layer.length).toBeLessThan(100_000);
    for (const piece of [1, 512, 700, 100_000]) expect(problemOf(layer, piece)).toBe("'./hole.img' is a sparse file");
  },
);

test("a sparse archive inside a layer's file is accepted, because it is content", async () => {
  await writeFile(join(directory, "hole.img"), "x");
  await truncate(join(directory, "hole.img"), 1024 ** 3);
  const inner = await tarred("-S", "--format=gnu");
  const outer = tarOf({ "inner.tar": inner.toString("latin1") });
  expect(outer.includes("hole.img")).toBe(true);
  expect(problemOf(outer)).toBeUndefined();
});

/** Changes the header of the entry at that block and corrects the header's checksum. */
function changed(layer: Buffer, at: number, change: (header: Buffer) => void): Buffer {
  const header = layer.subarray(at * BLOCK, (at + 1) * BLOCK);
  change(header);
  header.write(" ".repeat(8), 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return layer;
}

const record = (text: string) => {
  const length = text.length + 3;
  return `${length + String(length).length - 1} ${text}\n`;
};
/** An extended header of this type with these records, followed by a file of 600 bytes. */
const extended = (type: string, records: string) =>
  changed(tarOf({ about: records, file: "y".repeat(600) }), 0, (header) => header.write(type, 156));

test("a size in an extended header applies to its entry, so that the next entry is found where Docker finds it", () => {
  // Docker reads a file of one block, and the next block is no header.
  expect(problemOf(extended("x", record("size=512")))).toMatch(/damaged/);
  expect(problemOf(extended("x", record("size=600")))).toBeUndefined();
  expect(problemOf(extended("x", record("path=other")))).toBeUndefined();
});

test.each<[string, Buffer, RegExp]>([
  ["a link with content", changed(tarOf({ a: "x" }), 0, (header) => header.write("2", 156)), /'a' has content/],
  ["a directory with content", changed(tarOf({ a: "x" }), 0, (header) => header.write("5", 156)), /'a' has content/],
  [
    "an old directory with content",
    changed(tarOf({ "a/": "x" }), 0, (header) => header.fill(0, 156, 157)),
    /has content/,
  ],
  ["a size of everything after it", extended("g", record("size=512")), /global header/],
  ["sparse entries in everything after it", extended("g", record("GNU.sparse.major=1")), /sparse/],
  ["an extended header that is none", extended("x", "99 path=a\n"), /extended header of 'about' is damaged/],
  ["an extended header with a negative size", extended("x", record("size=-1")), /not a number/],
  [
    "a long name of gigabytes",
    changed(tarOf({ a: "x" }), 0, (header) => {
      header.write("L", 156);
      header.write("77777777777\0", 124);
    }),
    /too large/,
  ],
  [
    "a negative size",
    changed(tarOf({ a: "x" }), 0, (header) => void header.fill(0xff, 124, 136)),
    /header of 'a' is damaged/,
  ],
  [
    "a header with a wrong sum",
    Buffer.concat([Buffer.from("a"), tarOf({ a: "" }).subarray(1)]).fill("b", 0, 1),
    /damaged/,
  ],
  ["more after a block of zeros", Buffer.concat([Buffer.alloc(BLOCK), tarOf({ a: "" })]), /after a block of zeros/],
  ["no archive", Buffer.alloc(600, "x"), /damaged/],
])("%s is refused", (_name, layer, problem) => {
  expect(problemOf(layer)).toMatch(problem);
});

test("nothing is read after the end, as in Docker", () => {
  expect(problemOf(Buffer.concat([tarOf({ a: "x" }), Buffer.alloc(600, "x")]))).toBeUndefined();
  expect(problemOf(Buffer.alloc(0))).toBeUndefined();
});
