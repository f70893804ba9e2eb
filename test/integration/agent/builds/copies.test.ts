/** A COPY of a Dockerfile, from the folder that `svc` reads to the files in a template: what Docker would put there. */

import {
  chmodSync,
  createReadStream,
  createWriteStream,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { pack } from "tar-stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cleanArchive } from "../../../../agent/builds/steps/archive.ts";
import { ARCHIVE_LIMITS, createArchiveCheck } from "../../../../agent/builds/steps/archive-rules.ts";
import { splitSource, targetOf } from "../../../../agent/builds/steps/copy-script.ts";
import { filesOf, hashOf, readIgnored, writeArchive } from "../../../../cli/build/archive.ts";
import { copyInto } from "../../../../envd/steps/copy.ts";
import { unpack } from "../../../../envd/steps/unpack.ts";

const owner = { name: "me", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, home: "/", groups: [] };
let work = "";
const at = (path: string) => join(work, path);

beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), "svc-copies-"));
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

function write(path: string, text = path): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
}

/** Unpacked as a build's container does it. */
async function unpacked(archive: string, keepSetuid = false): Promise<void> {
  const check = createArchiveCheck({ limits: ARCHIVE_LIMITS, keepSetuid });
  await pipeline(cleanArchive(createReadStream(archive), check), createWriteStream(at("clean.tar")));
  await unpack(at("clean.tar"), at("files"));
}

/** The files below a directory, with what is in each. */
function tree(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).toSorted();
  const files = names.filter((name) => !statSync(join(directory, name)).isDirectory());
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(directory, name), "utf8")]));
}

async function copied(source: string, destination: string, mode = ""): Promise<Record<string, string>> {
  const { files, needsDirectory } = await filesOf(at("context"), source, () => false);
  mkdirSync(at("image"));
  if (files.length === 0) return {};
  await writeArchive(at("context"), files, { source, to: at("archive.tar.gz") });
  await unpacked(at("archive.tar.gz"));
  const given = needsDirectory && !destination.endsWith("/") ? `${destination}/` : destination;
  const target = targetOf(at("image"), given);
  copyInto({ files: at("files"), ...splitSource(source), destination: target, owner, mode });
  return tree(at("image"));
}

test.each([
  ["package*.json", ".", { "package-lock.json": "lock", "package.json": "package" }],
  ["src/*.js", "out", { out: "a" }],
  ["sub*", "out", { "out/x.txt": "x", "out/y.txt": "y" }],
  ["sub[12]/x.txt", "out/", { "out/x.txt": "x" }],
  ["deep/*/index.html", "out/", { "out/index.html": "two" }],
  ["pages/[[]id].js", "out/", { "out/[id].js": "page" }],
  ["current", "out", { "out/app.txt": "app" }],
  ["current/*.txt", "out/", { "out/app.txt": "app" }],
  ["link.json", "out", { out: "package" }],
  ["link.json", "out/.", { "out/link.json": "package" }],
  ["current/app.txt", "out", { out: "app" }],
  ["{{name}}", "out", { "out/t.txt": "t" }],
  ["wow!.txt", "out", { out: "wow" }],
  ["none*", "out", {}],
])("COPY %s %s is what Docker makes of it", async (source, destination, expected) => {
  const texts = {
    "package.json": "package",
    "package-lock.json": "lock",
    ".env": "secret",
    "src/a.js": "a",
    "src/b.ts": "b",
    "sub1/x.txt": "x",
    "sub2/y.txt": "y",
    "deep/one/index.html": "one",
    "deep/two/index.html": "two",
    "pages/[id].js": "page",
    "releases/1/app.txt": "app",
    "{{name}}/t.txt": "t",
    "wow!.txt": "wow",
  };
  for (const [path, text] of Object.entries(texts)) write(`context/${path}`, text);
  symlinkSync("releases/1", at("context/current"));
  symlinkSync("package.json", at("context/link.json"));
  expect(await copied(source, destination)).toEqual(expected);
});

test("what is copied keeps its time", async () => {
  write("context/old");
  utimesSync(at("context/old"), 1_500_000_000, 1_500_000_000);
  await copied("old", "new");
  expect(lstatSync(at("image/new")).mtimeMs).toBe(1_500_000_000_000);
});

test("a COPY of a link that leads out of the folder, or to nothing, is refused", async () => {
  write("context/x");
  write("secret");
  symlinkSync("../secret", at("context/out"));
  symlinkSync("nothing", at("context/gone"));
  await expect(filesOf(at("context"), "out", () => false)).rejects.toThrow("is a link that leaves the folder");
  await expect(filesOf(at("context"), "gone", () => false)).rejects.toThrow("is a link to nothing");
  symlinkSync("..", at("context/up"));
  await expect(filesOf(at("context"), "up/secret", () => false)).rejects.toThrow("up/secret is a link that leaves");
  await expect(filesOf(at("context"), "up/sec*", () => false)).rejects.toThrow("up is a link that leaves");
});

test("a file with the name of the Dockerfile before it counts in place of .dockerignore", async () => {
  const left = async (dockerfile: string) => {
    const isIgnored = await readIgnored(at("context"), at(dockerfile));
    return ["a.log", "a.txt"].filter((path) => !isIgnored(path));
  };
  write("context/x");
  expect(await left("context/Dockerfile")).toEqual(["a.log", "a.txt"]);
  write("context/.dockerignore", "*.txt\n");
  expect(await left("context/Dockerfile")).toEqual(["a.log"]);
  write("context/Dockerfile.dockerignore", "*.log\n");
  write("elsewhere/dev.dockerignore", "");
  expect(await left("context/Dockerfile")).toEqual(["a.txt"]);
  expect(await left("elsewhere/dev")).toEqual(["a.log", "a.txt"]);
  expect(await left("context/other")).toEqual(["a.log"]);
  mkdirSync(at("context/odd.dockerignore"));
  await expect(left("context/odd")).rejects.toThrow("cannot read");
});

test("what the caller may not read is refused by its name, unless .dockerignore leaves it out", async () => {
  for (const path of ["context/app.py", "context/data/base", "context/secret"]) write(path);
  chmodSync(at("context/data"), 0);
  chmodSync(at("context/secret"), 0);
  // Root reads everything.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) {
    chmodSync(work, 0o755);
    process.seteuid?.(65_534);
  }
  try {
    await expect(filesOf(at("context"), ".", () => false)).rejects.toThrow("COPY .: data cannot be read (EACCES)");
    const { files } = await filesOf(at("context"), ".", (path) => path === "data/");
    expect(files.map(({ path }) => path)).toEqual(["app.py", "secret"]);
    await expect(hashOf(at("context"), ".", files)).rejects.toThrow("COPY .: secret cannot be read (EACCES)");
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(at("context/data"), 0o755);
  }
});

test("what is copied for root keeps setuid and sticky bits", async () => {
  write("context/rootfs/bin/su");
  mkdirSync(at("context/rootfs/spool"));
  chmodSync(at("context/rootfs/bin/su"), 0o4755);
  chmodSync(at("context/rootfs/spool"), 0o1777);
  const { files } = await filesOf(at("context"), "rootfs", () => false);
  await writeArchive(at("context"), files, { source: "rootfs", to: at("archive.tar.gz") });
  await unpacked(at("archive.tar.gz"), true);
  expect(statSync(at("files/rootfs/bin/su")).mode & 0o7777).toBe(0o4755);
  expect(statSync(at("files/rootfs/spool")).mode & 0o7777).toBe(0o1777);
});

test.each([".", "*.txt", "sub"])(
  "COPY %s from a folder that is named by a link copies what is in it",
  async (source) => {
    write("real/app.txt");
    write("real/sub/deep.txt");
    symlinkSync("real", at("context"));
    const { files } = await filesOf(at("context"), source, () => false);
    expect(files.filter(({ kind }) => kind === "file").length).toBe(source === "." ? 2 : 1);
    await writeArchive(at("context"), files, { source, to: at("archive.tar.gz") });
    await unpacked(at("archive.tar.gz"));
    expect(Object.keys(tree(at("files")))).toEqual(files.filter(({ kind }) => kind === "file").map(({ path }) => path));
  },
);

test("a log that grows while the folder is read is sent as it was, and has the hash of that", async () => {
  write("context/app.log", "one\n");
  write("context/empty.log", "");
  const { files } = await filesOf(at("context"), ".", () => false);
  const hash = await hashOf(at("context"), ".", files);
  for (const name of ["app", "empty"]) writeFileSync(at(`context/${name}.log`), "two\n".repeat(50_000), { flag: "a" });
  expect(await hashOf(at("context"), ".", files)).toBe(hash);
  await writeArchive(at("context"), files, { source: ".", to: at("archive.tar.gz") });
  await unpacked(at("archive.tar.gz"));
  expect(tree(at("files"))).toEqual({ "app.log": "one\n", "empty.log": "" });
});

test.each([
  ["became shorter", () => writeFileSync(at("context/run/app.log"), "x"), "app.log became shorter while it was read"],
  ["was deleted", () => rmSync(at("context/run/app.log")), "app.log cannot be read (ENOENT)"],
])("a file that %s while the folder is read is named", async (_what, change, why) => {
  write("context/run/app.log", "one\n".repeat(50_000));
  write("context/run/more.log");
  const { files } = await filesOf(at("context"), "run", () => false);
  change();
  const wrong = `COPY run: run/${why}`;
  await expect(hashOf(at("context"), "run", files)).rejects.toThrow(wrong);
  await expect(writeArchive(at("context"), files, { source: "run", to: at("archive.tar.gz") })).rejects.toThrow(wrong);
});

test("a name that is not UTF-8 is refused as such", async () => {
  write("context/x");
  writeFileSync(Buffer.concat([Buffer.from(at("context/a")), Buffer.from([0xff])]), "");
  await expect(filesOf(at("context"), ".", () => false)).rejects.toThrow("has a name that is not UTF-8");
});

test("COPY with a symbolic mode changes each file and directory from what it was, and nothing beside them", async () => {
  write("context/tool/run.sh");
  write("context/tool/lib/data");
  chmodSync(at("context/tool/run.sh"), 0o744);
  chmodSync(at("context/tool/lib/data"), 0o600);
  await copied("tool", "opt/tool/", "go=u-w,+X");
  const modes = ["run.sh", "lib/data", "lib"].map((path) => lstatSync(at(`image/opt/tool/${path}`)).mode & 0o7777);
  expect(modes.map((mode) => mode.toString(8))).toEqual(["755", "644", "755"]);
});

test("an archive is unpacked with long names, long targets of links, modes and times", async () => {
  const long = `${"ü".repeat(60)}/${"d".repeat(150)}`;
  const archive = pack();
  const mtime = new Date(1_600_000_000_000);
  archive.entry({ name: `${long}/file`, mode: 0o751, mtime }, "content");
  archive.entry({ name: "directory", type: "directory", mode: 0o705, mtime });
  archive.entry({ name: "directory/inside", mtime }, "x".repeat(200_000));
  archive.entry({ name: "link", type: "symlink", linkname: `${long}/file`, mtime });
  archive.entry({ name: "hard", type: "link", linkname: `${long}/file`, mtime });
  archive.entry({ name: "twice", mtime }, "first");
  archive.entry({ name: "twice", mtime }, "second");
  archive.finalize();
  await pipeline(archive, createWriteStream(at("given.tar")));
  await unpacked(at("given.tar"));
  expect(readlinkSync(at("files/link"))).toBe(`${long}/file`);
  expect(readFileSync(at("files/hard"), "utf8")).toBe("content");
  expect(lstatSync(at("files/hard")).ino).toBe(lstatSync(at(`files/${long}/file`)).ino);
  expect(readFileSync(at("files/directory/inside"), "utf8")).toHaveLength(200_000);
  expect(readFileSync(at("files/twice"), "utf8")).toBe("second");
  const modes = [`${long}/file`, "directory"].map((path) => lstatSync(at(`files/${path}`)).mode & 0o777);
  expect(modes).toEqual([0o751, 0o705]);
  const times = [`${long}/file`, "directory", "link"].map((path) => lstatSync(at(`files/${path}`)).mtimeMs);
  expect(times).toEqual(times.map(() => mtime.getTime()));
});
