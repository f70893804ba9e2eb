import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { FileType } from "../../../../shared/envd-rpc/gen/filesystem_pb.js";
import { as, sharedEnvd } from "../running-envd.ts";

const { envd, clients } = sharedEnvd();
let count = 0;
/** A fresh directory for every test. */
let dir: string;
beforeEach(() => {
  count += 1;
  dir = join(envd.home, `t${count}`);
  mkdirSync(dir);
});

const user = as("user");
const stat = async (path: string) => (await clients.filesystem.stat({ path }, user)).entry;
const list = async (path: string, depth = 0) =>
  (await clients.filesystem.listDir({ path, depth }, user)).entries.map((entry) => entry.path);
const owner = (path: string) => [lstatSync(path).uid, lstatSync(path).gid];

describe("stat", () => {
  test("a file has its size, mode, owner and time", async () => {
    const path = join(dir, "f.txt");
    writeFileSync(path, "13 characters", { mode: 0o644 });
    utimesSync(path, 1_700_000_000.5, 1_700_000_000.5);
    expect(await stat(path)).toMatchObject({
      name: "f.txt",
      path,
      type: FileType.FILE,
      size: 13n,
      mode: 0o644,
      permissions: "-rw-r--r--",
      owner: "root",
      group: "root",
      modifiedTime: { seconds: 1_700_000_000n, nanos: 500_000_000 },
      metadata: {},
    });
    expect((await stat(path))?.symlinkTarget).toBeUndefined();
  });

  test("the root directory has the name that clients of the public protocol know", async () => {
    expect(await stat("/")).toMatchObject({ name: "/", path: "/", type: FileType.DIRECTORY });
  });

  test("a directory has a size, and a relative path starts at home", async () => {
    const entry = await stat(`t${count}`);
    expect(entry).toMatchObject({ path: dir, type: FileType.DIRECTORY, permissions: "drwxr-xr-x", mode: 0o755 });
    expect(entry?.size).toBeGreaterThan(0n);
  });

  test("a link has its own size and permissions, the type and mode of its target, and the whole target path", async () => {
    mkdirSync(join(dir, "a"));
    writeFileSync(join(dir, "a/target"), "x", { mode: 0o600 });
    symlinkSync("a/target", join(dir, "first"));
    symlinkSync("first", join(dir, "second"));
    expect(await stat(join(dir, "second"))).toMatchObject({
      type: FileType.FILE,
      mode: 0o600,
      permissions: "Lrwxrwxrwx",
      size: 5n,
      symlinkTarget: join(dir, "a/target"),
    });
    symlinkSync("a", join(dir, "directory"));
    expect(await stat(join(dir, "directory"))).toMatchObject({ type: FileType.DIRECTORY });
    symlinkSync("nowhere", join(dir, "dangling"));
    expect(await stat(join(dir, "dangling"))).toMatchObject({
      type: FileType.SYMLINK,
      symlinkTarget: join(dir, "dangling"),
    });
  });

  test("metadata that another program set is returned, under either prefix", async () => {
    const path = join(dir, "marked");
    writeFileSync(path, "");
    const set = (name: string, value: string) =>
      execFileSync("python3", [
        "-c",
        "import os,sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())",
        path,
        name,
        value,
      ]);
    set("user.e2b.author", "ann");
    set("user.svc.kind", "draft");
    set("user.other", "hidden");
    expect((await stat(path))?.metadata).toEqual({ author: "ann", kind: "draft" });
  });

  test("a missing path is not found", async () => {
    await expect(stat(join(dir, "missing"))).rejects.toMatchObject({ code: Code.NotFound });
    await expect(stat(join(dir, "missing/deeper"))).rejects.toMatchObject({ code: Code.NotFound });
  });
});

describe("listing", () => {
  beforeEach(() => {
    for (const path of ["b", "b/inner", "b/inner/deep", "a"]) mkdirSync(join(dir, path));
    for (const path of ["b/inner/deep/z", "b/inner/y", "b/x", "c.txt", "a.txt"]) writeFileSync(join(dir, path), "");
  });
  const below = (...names: string[]) => names.map((name) => join(dir, name));

  test.each([0, 1])("a listing with depth %i is one level, by name", async (depth) => {
    expect(await list(dir, depth)).toEqual(below("a", "a.txt", "b", "c.txt"));
  });

  test("a listing with a depth returns each directory before its entries", async () => {
    expect(await list(dir, 2)).toEqual(below("a", "a.txt", "b", "b/inner", "b/x", "c.txt"));
    expect(await list(dir, 3)).toEqual(
      below("a", "a.txt", "b", "b/inner", "b/inner/deep", "b/inner/y", "b/x", "c.txt"),
    );
    expect(await list(dir, 4_000_000_000)).toHaveLength(9);
  });

  test("a listing through a link keeps the requested name in its entries; links inside are not followed", async () => {
    symlinkSync("b", join(dir, "link"));
    symlinkSync("..", join(dir, "b/loop"));
    expect(await list(join(dir, "link"), 9)).toEqual(
      below("link/inner", "link/inner/deep", "link/inner/deep/z", "link/inner/y", "link/loop", "link/x"),
    );
  });

  test("a listing of /proc goes on past directories that the kernel hides", async () => {
    const entries = await list("/proc/1", 2);
    expect(entries).toEqual(expect.arrayContaining(["/proc/1/fdinfo", "/proc/1/map_files", "/proc/1/status"]));
  });

  test("sockets are listed without a type, in their place", async () => {
    const server = createServer().listen(join(dir, "b/sock"));
    await expect.poll(async () => (await list(join(dir, "b"))).length).toBe(3);
    const { entries } = await clients.filesystem.listDir({ path: join(dir, "b") }, user);
    expect(entries.find(({ name }) => name === "sock")).toMatchObject({ type: FileType.UNSPECIFIED });
    server.close();
  });

  test("a thousand entries come with owner and metadata in one call", async () => {
    for (let i = 0; i < 1_000; i += 1) writeFileSync(join(dir, "a", String(i).padStart(4, "0")), "");
    const { entries } = await clients.filesystem.listDir({ path: join(dir, "a") }, user);
    expect([entries.length, entries[999]?.name, entries[999]?.owner]).toEqual([1_000, "0999", "root"]);
  });

  test("a file, a missing path and a circular link are refused, each with its own reason", async () => {
    await expect(list(join(dir, "c.txt"))).rejects.toMatchObject({ code: Code.InvalidArgument });
    await expect(list(join(dir, "missing"))).rejects.toMatchObject({ code: Code.NotFound });
    symlinkSync("two", join(dir, "one"));
    symlinkSync("one", join(dir, "two"));
    await expect(list(join(dir, "one"))).rejects.toMatchObject({ code: Code.FailedPrecondition });
  });
});

describe("making, moving, removing", () => {
  test("missing parents of a new directory are made too, and belong to the user", async () => {
    const path = join(dir, "x/y/z");
    expect((await clients.filesystem.makeDir({ path }, user)).entry).toMatchObject({
      path,
      owner: "user",
      group: "user",
      permissions: "drwxr-xr-x",
    });
    expect(owner(join(dir, "x"))).toEqual([1000, 1000]);
  });

  test("making a directory that exists, or below a file, is refused, each with its own code", async () => {
    await expect(clients.filesystem.makeDir({ path: dir }, user)).rejects.toMatchObject({ code: Code.AlreadyExists });
    writeFileSync(join(dir, "file"), "");
    await expect(clients.filesystem.makeDir({ path: join(dir, "file") }, user)).rejects.toMatchObject({
      code: Code.InvalidArgument,
    });
    await expect(clients.filesystem.makeDir({ path: join(dir, "file/below") }, user)).rejects.toMatchObject({
      code: Code.InvalidArgument,
    });
  });

  test("several calls at once may make the same parents", async () => {
    await Promise.all(
      ["a", "b", "c", "d"].map((name) => clients.filesystem.makeDir({ path: join(dir, "deep/er", name) }, user)),
    );
    expect(await list(join(dir, "deep/er"))).toHaveLength(4);
  });

  test("a move makes parents, replaces files, and reports the new place", async () => {
    writeFileSync(join(dir, "one"), "1");
    writeFileSync(join(dir, "two"), "22");
    const move = (source: string, destination: string) =>
      clients.filesystem.move({ source: join(dir, source), destination: join(dir, destination) }, user);
    expect((await move("one", "new/place")).entry).toMatchObject({ path: join(dir, "new/place"), size: 1n });
    expect((await move("two", "new/place")).entry).toMatchObject({ size: 2n });
    expect(owner(join(dir, "new"))).toEqual([1000, 1000]);
    await expect(move("one", "x")).rejects.toMatchObject({ code: Code.NotFound });
    await expect(move("new", "new/inside")).rejects.toMatchObject({ code: Code.InvalidArgument });
  });

  test("a tree moves to another file system whole, with owners, modes, times, links and metadata", async () => {
    mkdirSync(join(dir, "tree/sub"), { recursive: true });
    writeFileSync(join(dir, "tree/sub/f"), "content");
    chmodSync(join(dir, "tree/sub/f"), 0o4751);
    utimesSync(join(dir, "tree/sub/f"), 1_600_000_000, 1_600_000_000);
    symlinkSync("f", join(dir, "tree/sub/l"));
    execFileSync("chown", ["-h", "1000:4242", join(dir, "tree/sub/f")]);
    execFileSync("chmod", ["4751", join(dir, "tree/sub/f")]);
    const elsewhere = `/dev/shm/envd-move-${process.pid}`;
    await clients.filesystem.move({ source: join(dir, "tree"), destination: elsewhere }, user);
    const entries = (await clients.filesystem.listDir({ path: elsewhere, depth: 9 }, user)).entries;
    expect(entries.map(({ name }) => name)).toEqual(["sub", "f", "l"]);
    expect(entries[1]).toMatchObject({
      owner: "user",
      group: "extra",
      permissions: "urwxr-x--x",
      modifiedTime: { seconds: 1_600_000_000n },
    });
    expect(entries[2]?.symlinkTarget).toBe(`${elsewhere}/sub/f`);
    await expect(stat(join(dir, "tree"))).rejects.toMatchObject({ code: Code.NotFound });
    await clients.filesystem.remove({ path: elsewhere }, user);
  });

  test("what has a name as long as names may be moves to another file system, too", async () => {
    const name = "名".repeat(85);
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, name), "content");
    const elsewhere = `/dev/shm/${name}`;
    await clients.filesystem.move({ source: join(dir, name), destination: elsewhere }, user);
    expect(await list(elsewhere)).toEqual([join(elsewhere, name)]);
    await clients.filesystem.remove({ path: elsewhere }, user);
  });

  test("remove deletes a directory with its content, and succeeds for a missing path", async () => {
    mkdirSync(join(dir, "r/s/t"), { recursive: true });
    symlinkSync("/etc", join(dir, "r/etc"));
    await clients.filesystem.remove({ path: join(dir, "r") }, user);
    await expect(stat(join(dir, "r"))).rejects.toMatchObject({ code: Code.NotFound });
    await clients.filesystem.remove({ path: join(dir, "r") }, user);
    await clients.filesystem.remove({ path: join(dir, "r/s") }, user);
    expect((await stat("/etc"))?.type).toBe(FileType.DIRECTORY);
  });
});

test("an unknown user is refused, and so is a path with a zero byte", async () => {
  await expect(clients.filesystem.stat({ path: "/" }, as("ghost"))).rejects.toMatchObject({
    code: Code.Unauthenticated,
    rawMessage: "invalid username: 'ghost'",
  });
  await expect(clients.filesystem.stat({ path: "a\0b" }, user)).rejects.toMatchObject({ code: Code.InvalidArgument });
});
