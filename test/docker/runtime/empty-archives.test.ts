/** Archives of empty directories, which the library in CRIU writes and reads in tar's place: each reads what the other has written. */

import { execFile } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { PRELOAD_SOURCES } from "../../support/criu/preload-sources.ts";

const run = promisify(execFile);
const SOURCES = join(import.meta.dirname, "../../../scripts/host/criu");
const CHANGED = 1_000_000_000;
// As CRIU calls tar.
const PACK =
  "tar --create --gzip --no-unquote --no-wildcards --one-file-system --check-links --preserve-permissions --sparse --numeric-owner " +
  "--directory /proc/self/fd/0 .";
const UNPACK = "tar --extract --gzip --no-unquote --no-wildcards --directory";

const place = { directory: "", library: "" };

beforeAll(async () => {
  place.directory = await mkdtemp(join(tmpdir(), "svc-archives-"));
  place.library = join(place.directory, "archives.so");
  const sources = ["criu-archives.c"].map((name) => join(SOURCES, name));
  await run("cc", ["-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-o", place.library, ...sources]);
});
afterAll(() => rm(place.directory, { recursive: true }));

/** Runs it by `execvp`, as CRIU does. With `path` the program that is looked for is not there. */
async function exec(
  command: string,
  { library = place.library, from = "", to = "", path = process.env.PATH ?? "" } = {},
) {
  const script = `exec perl -e 'exec { $ARGV[0] } @ARGV or exit 9' ${command}`;
  const redirected = `PATH=${path}; export PATH; LD_PRELOAD=${library} ${script.replace("perl", "/usr/bin/perl")} <${from} >${to || "/dev/null"}`;
  await run("/bin/sh", ["-c", redirected], { cwd: place.directory });
}

async function directory(name: string, { mode = 0o755, owner = 0, group = 0 } = {}): Promise<string> {
  const made = join(place.directory, name);
  await mkdir(made);
  await chown(made, owner, group);
  await chmod(made, mode);
  await utimes(made, CHANGED, CHANGED);
  return made;
}

const about = async (path: string) => {
  const { mode, uid, gid, mtimeMs } = await stat(path);
  return { mode: mode & 0o7777, owner: uid, group: gid, changed: mtimeMs / 1_000 };
};

test.each([
  { name: "usual", mode: 0o755, owner: 0, group: 0 },
  { name: "shared", mode: 0o1777, owner: 5, group: 7 },
  { name: "of a far user", mode: 0o2700, owner: 2_097_151, group: 65_534 },
])("an empty directory, $name, is stored and restored without a program, and tar reads the same", async (one) => {
  const { name, ...given } = one;
  const id = name.replaceAll(" ", "-");
  const from = await directory(`from-${id}`, given);
  const archive = join(place.directory, `archive-${id}`);
  const wanted = { ...given, changed: CHANGED };
  await exec(PACK, { from, to: archive, path: "/nowhere" });
  const own = await directory(`own-${id}`);
  await exec(`${UNPACK} ${own}`, { from: archive, path: "/nowhere" });
  expect(await about(own)).toEqual(wanted);
  const tars = await directory(`tars-${id}`);
  await exec(`${UNPACK} ${tars}`, { from: archive, library: "" });
  expect(await about(tars)).toEqual(wanted);
});

test("what tar has written is left to tar, and so is a directory with something in it, or of a user whose number is too large", async () => {
  const empty = await directory("empty");
  const ofTar = join(place.directory, "of-tar");
  await exec(PACK, { from: empty, to: ofTar, library: "" });
  const restored = await directory("restored");
  await expect(exec(`${UNPACK} ${restored}`, { from: ofTar, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
  await exec(`${UNPACK} ${restored}`, { from: ofTar });
  expect(await about(restored)).toMatchObject({ changed: CHANGED });

  const full = await directory("full");
  await writeFile(join(full, ".hidden"), "text");
  await expect(exec(PACK, { from: full, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
  const archive = join(place.directory, "of-full");
  await exec(PACK, { from: full, to: archive });
  const copy = await directory("copy");
  await exec(`${UNPACK} ${copy}`, { from: archive });
  expect(await readFile(join(copy, ".hidden"), "utf8")).toBe("text");

  const far = await directory("far", { owner: 2_097_152 });
  await expect(exec(PACK, { from: far, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
});

test("an archive with one bit changed, or with more behind it, is not taken for one of an empty directory", async () => {
  const from = await directory("source");
  const archive = join(place.directory, "whole");
  await exec(PACK, { from, to: archive, path: "/nowhere" });
  const bytes = await readFile(archive);
  const to = await directory("target");
  for (const at of [0, 20, 120, 300, 1_200, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await writeFile(archive, changed);
    await expect(exec(`${UNPACK} ${to}`, { from: archive, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
  }
  await writeFile(archive, Buffer.alloc(bytes.length, "7"));
  await expect(exec(`${UNPACK} ${to}`, { from: archive, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
  await writeFile(archive, Buffer.concat([bytes, Buffer.from("x")]));
  await expect(exec(`${UNPACK} ${to}`, { from: archive, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
});

test("a place in a sandbox's root is looked for there, and a link in it does not lead to the host", async () => {
  const library = join(place.directory, "preload.so");
  await run("cc", ["-shared", "-fPIC", "-fvisibility=hidden", "-o", library, ...PRELOAD_SOURCES]);
  const from = await directory("secret", { mode: 0o700 });
  const archive = join(place.directory, "archive-secret");
  await exec(PACK, { library, from, to: archive, path: "/nowhere" });
  // CRIU makes the mounts of a sandbox in such a directory.
  const yard = await mkdtemp("/tmp/.criu.mntns.");
  onTestFinished(() => rm(yard, { recursive: true }));
  const inside = join(yard, "mnt-1", "dev", "shm");
  await mkdir(inside, { recursive: true });
  const host = await directory("host");
  await symlink(host, join(yard, "mnt-1", "dev", "link"));
  await exec(`${UNPACK} ${inside}`, { library, from: archive, path: "/nowhere" });
  expect(await about(inside)).toMatchObject({ mode: 0o700, changed: CHANGED });
  const linked = exec(`${UNPACK} ${join(yard, "mnt-1", "dev", "link")}`, { library, from: archive, path: "/nowhere" });
  await expect(linked).rejects.toMatchObject({ code: 1 });
  expect(await about(host)).toMatchObject({ mode: 0o755 });
});

test("any other command starts its program", async () => {
  const from = await directory("other");
  const listing = join(place.directory, "listing");
  await exec("ls -a .", { from: "/dev/null", to: listing });
  expect(await readFile(listing, "utf8")).toContain("other");
  await expect(exec(`${PACK} more`, { from, path: "/nowhere" })).rejects.toMatchObject({ code: 9 });
});
