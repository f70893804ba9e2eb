import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { extract, type Header, pack } from "tar-stream";
import { expect, test } from "vitest";
import { cleanArchive } from "../../../../agent/builds/steps/archive.ts";
import {
  ARCHIVE_LIMITS,
  type ArchiveLimits,
  createArchiveCheck,
  type GivenEntry,
} from "../../../../agent/builds/steps/archive-rules.ts";

type Entry = Partial<Header> & { readonly name: string; readonly content?: string };

async function archive(entries: readonly Entry[]): Promise<Buffer> {
  const made = pack();
  for (const { content, ...header } of entries) made.entry(header, content ?? "");
  made.finalize();
  return buffer(made);
}

async function clean(bytes: Buffer, limits: ArchiveLimits = ARCHIVE_LIMITS, keepSetuid = false): Promise<Entry[]> {
  const found: Entry[] = [];
  const read = extract();
  read.on("entry", (header, content, next) => {
    const parts: Buffer[] = [];
    content.on("data", (part) => parts.push(part as Buffer));
    content.once("end", () => {
      found.push({ ...header, content: Buffer.concat(parts).toString("utf8") });
      next();
    });
  });
  const stream = cleanArchive(Readable.from([bytes]), createArchiveCheck({ limits, keepSetuid }));
  const done = new Promise((resolve, reject) => {
    read.once("finish", () => resolve(undefined));
    stream.once("error", reject);
  });
  stream.pipe(read);
  await done;
  return found;
}

const PLAIN: Entry[] = [
  { name: "folder", type: "directory", mode: 0o750 },
  { name: "folder/ü.txt", mode: 0o640, content: "text", uid: 1234 },
  { name: "folder/again", type: "link", linkname: "folder/ü.txt" },
  { name: "folder/to", type: "symlink", linkname: "../../etc/passwd" },
  { name: "./x", content: "" },
];

test.each([
  ["plain", (bytes: Buffer) => bytes],
  ["gzip", (bytes: Buffer) => gzipSync(bytes)],
])("a %s archive unpacks to its files, owned by root", async (_name, wrap) => {
  const found = await clean(wrap(await archive(PLAIN)));
  expect(found.map(({ name, type, mode, content, uid }) => ({ name, type, mode, content, uid }))).toEqual([
    { name: "folder", type: "directory", mode: 0o750, content: "", uid: 0 },
    { name: "folder/ü.txt", type: "file", mode: 0o640, content: "text", uid: 0 },
    { name: "folder/again", type: "link", mode: 0o644, content: "", uid: 0 },
    { name: "folder/to", type: "symlink", mode: 0o644, content: "", uid: 0 },
    { name: "x", type: "file", mode: 0o644, content: "", uid: 0 },
  ]);
  expect(found[3]?.linkname).toBe("../../etc/passwd");
});

const HOSTILE: [string, Entry[], RegExp][] = [
  ["an absolute path", [{ name: "/etc/passwd", content: "x" }], /absolute path/],
  ["a way out", [{ name: "a/../../etc/passwd", content: "x" }], /leads out/],
  [
    "a file behind its own link",
    [
      { name: "a", type: "symlink", linkname: "/etc" },
      { name: "a/b", content: "x" },
    ],
    /symbolic link in the archive/,
  ],
  [
    "a file deep behind a link",
    [
      { name: "a/b", type: "symlink", linkname: "/" },
      { name: "a/b/c/d", content: "x" },
    ],
    /symbolic link in the archive/,
  ],
  [
    "a link that replaces a directory",
    [
      { name: "a", type: "directory" },
      { name: "a", type: "symlink", linkname: "/" },
    ],
    /twice/,
  ],
  [
    "a link that replaces a link",
    [
      { name: "a", type: "symlink", linkname: "b" },
      { name: "a", type: "symlink", linkname: "/" },
    ],
    /twice/,
  ],
  ["a hard link out", [{ name: "a", type: "link", linkname: "../../etc/shadow" }], /leads out/],
  ["an absolute hard link", [{ name: "a", type: "link", linkname: "/etc/shadow" }], /absolute/],
  [
    "a hard link to a link",
    [
      { name: "l", type: "symlink", linkname: "/etc/shadow" },
      { name: "a", type: "link", linkname: "l" },
    ],
    /not an earlier file of the archive/,
  ],
  [
    "a hard link to what comes later",
    [
      { name: "a", type: "link", linkname: "b" },
      { name: "b", content: "x" },
    ],
    /not an earlier file of the archive/,
  ],
  ["a device", [{ name: "sda", type: "block-device", devmajor: 8, devminor: 0 }], /device/],
  ["a character device", [{ name: "mem", type: "character-device", devmajor: 1, devminor: 1 }], /device/],
  ["a named pipe", [{ name: "pipe", type: "fifo" }], /named pipe/],
];

test.each(HOSTILE)("%s is refused with a reason", async (_name, entries, reason) => {
  await expect(clean(await archive(entries))).rejects.toThrow(reason);
  await expect(clean(gzipSync(await archive(entries)))).rejects.toThrow(reason);
});

test("too many entries, too many bytes and a bomb are refused", async () => {
  const many = Array.from({ length: 11 }, (_, index) => ({ name: `f${index}`, content: "12345678" }));
  await expect(clean(await archive(many), { ...ARCHIVE_LIMITS, entries: 10 })).rejects.toThrow(/more than 10 entries/);
  await expect(clean(await archive(many), { ...ARCHIVE_LIMITS, bytes: 80 })).rejects.toThrow(/more than 80 bytes/);
  const bomb = gzipSync(await archive([{ name: "zeros", content: "\0".repeat(3_000_000) }]));
  await expect(clean(bomb, { ...ARCHIVE_LIMITS, ratioFrom: 1_000_000 })).rejects.toThrow(/200 times/);
});

test("bytes that are no archive fail with that reason", async () => {
  await expect(clean(Buffer.from("nothing like a tar archive ".repeat(100)))).rejects.toThrow(/damaged/);
  await expect(clean(gzipSync(await archive(PLAIN)).subarray(0, 60))).rejects.toThrow(/damaged/);
  const cut = (await archive([{ name: "a", content: "x".repeat(600) }])).subarray(0, 530);
  for (const bytes of [cut, gzipSync(cut)])
    await expect(clean(bytes)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining("damaged"),
    });
});

test.each([
  [false, 0o755],
  [true, 0o4755],
])("setuid stays only where the owner is root: %s", async (keepSetuid, mode) => {
  const found = await clean(await archive([{ name: "su", mode: 0o4755, content: "x" }]), ARCHIVE_LIMITS, keepSetuid);
  expect(found[0]?.mode).toBe(mode);
});

test("an archive never yields an entry outside of its directory", () => {
  const part = fc.constantFrom("a", "b", "..", ".", "", "c\0", "/");
  const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
  const entry = fc.record({
    name: path,
    type: fc.constantFrom("file", "directory", "symlink", "link", "fifo", "block-device", "?"),
    size: fc.constant(0),
    mode: fc.nat(0o7777),
    linkname: path,
    mtime: fc.constant(undefined),
  });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 12 }), (entries: GivenEntry[]) => {
      const check = createArchiveCheck({ limits: ARCHIVE_LIMITS, keepSetuid: false });
      const links = new Set<string>();
      for (const given of entries) {
        let found: ReturnType<typeof check.entry>;
        try {
          found = check.entry(given);
        } catch {
          return;
        }
        if (found === undefined) continue;
        const { name, type, linkname = "", mode } = found;
        expect(name.startsWith("/") || name.split("/").includes("..") || name.includes("\0")).toBe(false);
        for (const link of links) expect(name.startsWith(`${link}/`)).toBe(false);
        if (type === "link") expect(linkname.startsWith("/") || linkname.split("/").includes("..")).toBe(false);
        expect(mode & 0o6000).toBe(0);
        if (type === "symlink") links.add(name);
      }
    }),
  );
});
