/** Directories and the facts about an entry: listing, making, moving, removing, links and permissions. */

import { FileNotFoundError, InvalidArgumentError } from "e2b";
import { beforeAll, describe, expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { targetOf, unary } from "../../support/sandbox/sandbox-host.ts";
import { refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const sandbox = sharedSandbox();

describe("list", () => {
  beforeAll(async () => {
    await sandbox().commands.run(
      "mkdir -p tree/b/inner/leaf tree/a tree/.hidden && echo 1 > tree/b/inner/file && echo 22 > tree/c.txt && ln -s b tree/link",
    );
  });

  test("one level is listed by default, in the order of names, without the directory itself", async () => {
    const entries = await sandbox().files.list("tree");
    expect(entries.map((entry) => entry.name)).toEqual([".hidden", "a", "b", "c.txt", "link"]);
    expect(entries.map((entry) => entry.path)).toContain("/home/user/tree/c.txt");
  });

  test("entries of deeper levels follow their parent, and links are not followed", async () => {
    const two = await sandbox().files.list("tree", { depth: 2 });
    expect(two.map((entry) => entry.path.replace("/home/user/tree/", ""))).toEqual([
      ".hidden",
      "a",
      "b",
      "b/inner",
      "c.txt",
      "link",
    ]);
    const all = await sandbox().files.list("tree", { depth: 10 });
    expect(all.map((entry) => entry.path.replace("/home/user/tree/", ""))).toEqual([
      ".hidden",
      "a",
      "b",
      "b/inner",
      "b/inner/file",
      "b/inner/leaf",
      "c.txt",
      "link",
    ]);
  });

  test("a link to a directory is listed under the path that was asked for", async () => {
    const entries = await sandbox().files.list("tree/link");
    expect(entries.map((entry) => entry.path)).toEqual(["/home/user/tree/link/inner"]);
  });

  test("an empty directory is an empty list", async () => {
    expect(await sandbox().files.list("tree/a")).toEqual([]);
  });

  test("a missing path, a file, and a depth below one are refused", async () => {
    expect(await refusal(sandbox().files.list("no/such"))).toBeInstanceOf(FileNotFoundError);
    expect(await refusal(sandbox().files.list("tree/c.txt"))).toBeInstanceOf(InvalidArgumentError);
    expect(await refusal(sandbox().files.list("tree", { depth: 0 }))).toBeInstanceOf(InvalidArgumentError);
  });

  test("a raw call without a depth lists one level", async () => {
    const target = await targetOf(platform, sandbox().sandboxId);
    const reply = await unary(platform, target, "filesystem.Filesystem/ListDir", { message: { path: "tree" } });
    expect((reply.json as { entries: unknown[] }).entries).toHaveLength(5);
  });

  test("a circular link is refused with its own reason", async () => {
    await sandbox().commands.run("ln -sf circle2 circle1; ln -sf circle1 circle2");
    const target = await targetOf(platform, sandbox().sandboxId);
    const reply = await unary(platform, target, "filesystem.Filesystem/ListDir", { message: { path: "circle1" } });
    expect(reply.json).toMatchObject({ code: "failed_precondition" });
  });

  test("two thousand entries come in one list", async () => {
    await sandbox().commands.run("mkdir -p wide && cd wide && seq -f 'f%04g' 1 2000 | xargs touch");
    const entries = await sandbox().files.list("wide");
    expect(entries).toHaveLength(2000);
    expect(entries.at(-1)?.name).toBe("f2000");
  });

  test("sockets, pipes and devices are left out", async () => {
    await sandbox().commands.run("mkdir -p odd && mkfifo odd/pipe && touch odd/file");
    expect((await sandbox().files.list("odd")).map((entry) => entry.name)).toEqual(["file"]);
  });
});

describe("getInfo", () => {
  test("a file has its size, mode, owner and time", async () => {
    await sandbox().files.write("info.txt", "12345");
    const info = await sandbox().files.getInfo("info.txt");
    expect(info).toMatchObject({
      name: "info.txt",
      path: "/home/user/info.txt",
      type: "file",
      size: 5,
      mode: 0o644,
      permissions: "-rw-r--r--",
      owner: "user",
      group: "user",
    });
    expect(Math.abs((info.modifiedTime?.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(info.symlinkTarget).toBeUndefined();
    expect(info.metadata).toBeUndefined();
  });

  test("a directory has a size and the letter d, and /tmp is sticky", async () => {
    await sandbox().files.makeDir("info-dir");
    const info = await sandbox().files.getInfo("info-dir");
    expect(info).toMatchObject({ type: "dir", mode: 0o755, permissions: "drwxr-xr-x" });
    expect(info.size).toBeGreaterThan(0);
    expect((await sandbox().files.getInfo("/tmp")).permissions).toBe("dtrwxrwxrwx");
  });

  test("a link shows its target, and has the kind of its target", async () => {
    await sandbox().commands.run(
      "echo x > real.txt; ln -sf real.txt info-link; ln -sfn /tmp info-dirlink; ln -sf nowhere info-dangling",
    );
    expect(await sandbox().files.getInfo("info-link")).toMatchObject({
      type: "file",
      path: "/home/user/info-link",
      symlinkTarget: "/home/user/real.txt",
      permissions: "Lrwxrwxrwx",
    });
    expect(await sandbox().files.getInfo("info-dirlink")).toMatchObject({ type: "dir", symlinkTarget: "/tmp" });
    expect((await sandbox().files.getInfo("info-dangling")).type).toBe("symlink");
  });

  test("odd permissions and owners without a name are shown as ls shows them", async () => {
    await sandbox().commands.run("touch perm && chmod 4711 perm && sudo chown 4242:4243 perm");
    const info = await sandbox().files.getInfo("perm");
    expect(info.permissions).toMatch(/rwx--x--x$/);
    expect([info.owner, info.group]).toEqual(["4242", "4243"]);
  });

  test("a missing path is not found", async () => {
    expect(await refusal(sandbox().files.getInfo("no/such"))).toBeInstanceOf(FileNotFoundError);
    expect(await sandbox().files.exists("no/such")).toBe(false);
  });
});

describe("make, move, remove", () => {
  test("makeDir makes missing parents and returns true, and false for a directory that exists", async () => {
    expect(await sandbox().files.makeDir("made/deep/er")).toBe(true);
    expect(await sandbox().files.makeDir("made/deep/er")).toBe(false);
    expect(await sandbox().files.getInfo("made/deep")).toMatchObject({ owner: "user", mode: 0o755 });
  });

  test("makeDir below a file is refused", async () => {
    await sandbox().files.write("in-the-way", "x");
    expect(await refusal(sandbox().files.makeDir("in-the-way"))).toBeInstanceOf(InvalidArgumentError);
  });

  test("rename moves files, makes missing parents, overwrites, and returns the new path", async () => {
    await sandbox().files.write("old.txt", "moved");
    const info = await sandbox().files.rename("old.txt", "new/place.txt");
    expect(info).toMatchObject({ name: "place.txt", path: "/home/user/new/place.txt", type: "file", size: 5 });
    expect(await sandbox().files.exists("old.txt")).toBe(false);
    await sandbox().files.write("other.txt", "over");
    await sandbox().files.rename("other.txt", "new/place.txt");
    expect(await sandbox().files.read("new/place.txt")).toBe("over");
  });

  test("rename moves directories with what is in them", async () => {
    await sandbox().files.write("olddir/sub/file", "x");
    expect((await sandbox().files.rename("olddir", "newdir")).type).toBe("dir");
    expect(await sandbox().files.read("newdir/sub/file")).toBe("x");
  });

  test("rename of a missing path is not found", async () => {
    expect(await refusal(sandbox().files.rename("no/such", "x"))).toBeInstanceOf(FileNotFoundError);
  });

  test("remove deletes files, trees and links (not their targets), and refuses what is gone", async () => {
    await sandbox().commands.run("mkdir -p gone/deep && touch gone/deep/f keep && ln -s ../keep gone/link");
    await sandbox().files.remove("gone");
    expect(await sandbox().files.exists("gone")).toBe(false);
    expect(await sandbox().files.exists("keep")).toBe(true);
    await sandbox().files.remove("gone");
  });
});
