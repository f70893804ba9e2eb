/** Reading and writing files through the SDK: formats, sizes, names, owners, metadata and compression. */

import { createHash, randomBytes } from "node:crypto";
import { FileNotFoundError, InvalidArgumentError, NotEnoughSpaceError } from "e2b";
import { describe, expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

openPlatform();
const sandbox = sharedSandbox();
const encoder = new TextEncoder();

describe("read and write", () => {
  test("text comes back as it went in", async () => {
    const written = await sandbox().files.write("hello.txt", "hello ü 漢 🦊\n");
    expect(written).toEqual({ name: "hello.txt", path: "/home/user/hello.txt", type: "file" });
    expect(await sandbox().files.read("hello.txt")).toBe("hello ü 漢 🦊\n");
    expect((await sandbox().commands.run("cat hello.txt")).stdout).toBe("hello ü 漢 🦊\n");
  });

  test("every format of reading gives the same bytes", async () => {
    const bytes = new Uint8Array(randomBytes(100_000));
    await sandbox().files.write("/tmp/bytes", bytes.buffer);
    expect(sha(await sandbox().files.read("/tmp/bytes", { format: "bytes" }))).toBe(sha(bytes));
    const blob = await sandbox().files.read("/tmp/bytes", { format: "blob" });
    expect(sha(new Uint8Array(await blob.arrayBuffer()))).toBe(sha(bytes));
    const parts: Uint8Array[] = [];
    for await (const part of await sandbox().files.read("/tmp/bytes", { format: "stream" })) parts.push(part);
    expect(sha(Buffer.concat(parts))).toBe(sha(bytes));
  });

  test("every form of data may be written", async () => {
    const bytes = encoder.encode("form");
    const stream = new Blob([bytes]).stream();
    for (const data of ["form", bytes.slice().buffer, new Blob([bytes]), stream]) {
      await sandbox().files.write("/tmp/form", data);
      expect(await sandbox().files.read("/tmp/form")).toBe("form");
    }
    await sandbox().files.write("/tmp/form", "octets", { useOctetStream: true });
    expect(await sandbox().files.read("/tmp/form")).toBe("octets");
  });

  test("an empty file is empty in every format", async () => {
    await sandbox().files.write("/tmp/empty", "");
    expect(await sandbox().files.read("/tmp/empty")).toBe("");
    expect(await sandbox().files.read("/tmp/empty", { format: "bytes" })).toHaveLength(0);
    expect((await sandbox().files.read("/tmp/empty", { format: "blob" })).size).toBe(0);
  });

  test("a second write replaces the content, also with a shorter one", async () => {
    await sandbox().files.write("/tmp/again", "a long first version");
    await sandbox().files.write("/tmp/again", "short");
    expect(await sandbox().files.read("/tmp/again")).toBe("short");
  });

  test("many files are written in one call, in order, with the directories they need", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `many/${index % 4}/file ${index}.txt`);
    const written = await sandbox().files.write(names.map((path, index) => ({ path, data: `content ${index}` })));
    expect(written.map((info) => info.path)).toEqual(names.map((path) => `/home/user/${path}`));
    expect(await sandbox().files.read(names[39] ?? "")).toBe("content 39");
    expect(await sandbox().files.write([])).toEqual([]);
  });

  test.each([
    "ü.txt",
    "d i r/漢字 🦊.txt",
    "quo\"te'.txt",
    "per%20cent&amp;+plus=.txt",
    "new\nline",
    "-dash",
    "semi;colon",
  ])("a file named %j is written and read back", async (name) => {
    const written = await sandbox().files.write(`names/${name}`, name);
    expect(written.path).toBe(`/home/user/names/${name}`);
    expect(await sandbox().files.read(`names/${name}`)).toBe(name);
    expect(await sandbox().files.exists(`names/${name}`)).toBe(true);
    await sandbox().files.write(`names/${name}`, "octets", { useOctetStream: true });
    expect(await sandbox().files.read(`names/${name}`)).toBe("octets");
  });

  test("home, relative, dotted and absolute paths name one file", async () => {
    await sandbox().files.write("~/where.txt", "here");
    for (const path of [
      "where.txt",
      "./where.txt",
      "x/../where.txt",
      "/home/user/where.txt",
      "/home//user/./where.txt",
    ]) {
      expect(await sandbox().files.read(path)).toBe("here");
    }
  });

  test("root writes to root's home, and the owner is the one who wrote", async () => {
    expect((await sandbox().files.write("mine.txt", "r", { user: "root" })).path).toBe("/root/mine.txt");
    expect(await sandbox().files.getInfo("/root/mine.txt", { user: "root" })).toMatchObject({
      owner: "root",
      group: "root",
    });
    await sandbox().files.write("/tmp/new/deep/mine.txt", "u");
    for (const path of ["/tmp/new", "/tmp/new/deep", "/tmp/new/deep/mine.txt"]) {
      expect(await sandbox().files.getInfo(path)).toMatchObject({ owner: "user", group: "user" });
    }
  });

  test("a new file is 0644; an old one keeps its mode", async () => {
    await sandbox().files.write("/tmp/mode", "x");
    expect((await sandbox().files.getInfo("/tmp/mode")).mode).toBe(0o644);
    await sandbox().commands.run("chmod 750 /tmp/mode");
    await sandbox().files.write("/tmp/mode", "y");
    expect((await sandbox().files.getInfo("/tmp/mode")).mode).toBe(0o750);
  });

  test("files of /proc are read to their end", async () => {
    expect(await sandbox().files.read("/proc/sys/kernel/random/boot_id")).toMatch(/^[0-9a-f-]{36}\n$/);
    expect(await sandbox().files.read("/proc/self/status", { gzip: true })).toContain("Name:");
  });

  test("a symlink is followed by reading and writing", async () => {
    await sandbox().commands.run("echo first > target.txt && ln -sf target.txt link.txt");
    expect(await sandbox().files.read("link.txt")).toBe("first\n");
    await sandbox().files.write("link.txt", "second");
    expect(await sandbox().files.read("target.txt")).toBe("second");
  });

  test("a symlink in /tmp, which anybody may write to, is followed too", async () => {
    await sandbox().commands.run("echo first > /tmp/target.txt && ln -sf /tmp/target.txt /tmp/link.txt");
    expect(await sandbox().files.read("/tmp/link.txt")).toBe("first\n");
    await sandbox().files.write("/tmp/link.txt", "second");
    expect(await sandbox().files.read("/tmp/target.txt")).toBe("second");
  });
});

describe("what cannot be read or written", () => {
  test("a file that is not there is named", async () => {
    const error = await refusal(sandbox().files.read("no/such.txt"));
    expect(error).toBeInstanceOf(FileNotFoundError);
    expect(error.message).toContain("path '/home/user/no/such.txt' does not exist");
  });

  test("a directory can neither be read nor written as a file", async () => {
    const reading = await refusal(sandbox().files.read("/tmp"));
    expect(reading).toBeInstanceOf(InvalidArgumentError);
    expect(reading.message).toContain("path '/tmp' is a directory");
    const writing = await refusal(sandbox().files.write("/tmp", "x"));
    expect(writing).toBeInstanceOf(InvalidArgumentError);
    expect(writing.message).toContain("is a directory");
  });

  test("a pipe is not a regular file, and a read of it does not wait", async () => {
    await sandbox().commands.run("mkfifo /tmp/pipe");
    expect(await refusal(sandbox().files.read("/tmp/pipe"))).toBeInstanceOf(InvalidArgumentError);
  });

  test("an unknown user is refused by name", async () => {
    const error = await refusal(sandbox().files.read("x", { user: "nobody-knows" }));
    expect(error.message).toContain("error looking up user 'nobody-knows'");
  });

  test("a write to a full file system fails with its own error", async () => {
    const { stdout } = await sandbox().commands.run("df --output=avail -B1 /dev/shm | tail -1");
    const room = Number(stdout.trim());
    expect(room).toBeLessThan(512 << 20);
    const error = await refusal(sandbox().files.write("/dev/shm/big", new Blob([new Uint8Array(room + (4 << 20))])));
    expect(error).toBeInstanceOf(NotEnoughSpaceError);
    // The removal follows at once: the upload, of which envd did not read the end, must not block the next request.
    await sandbox().files.remove("/dev/shm/big");
  });
});

describe("compression and metadata", () => {
  test("content that is compressed both ways stays the same", async () => {
    const content = "compress me ".repeat(50_000);
    await sandbox().files.write("/tmp/packed.txt", content, { gzip: true });
    expect((await sandbox().commands.run("wc -c < /tmp/packed.txt")).stdout.trim()).toBe(String(content.length));
    expect(await sandbox().files.read("/tmp/packed.txt", { gzip: true })).toBe(content);
    expect(await sandbox().files.read("/tmp/packed.txt")).toBe(content);
  });

  test("metadata is kept with the file, with lower-case keys", async () => {
    const metadata = { Author: "Ada", step: "1 of 2" };
    const written = await sandbox().files.write("/tmp/meta.txt", "x", { metadata });
    expect(written.metadata).toEqual({ author: "Ada", step: "1 of 2" });
    expect((await sandbox().files.getInfo("/tmp/meta.txt")).metadata).toEqual({ author: "Ada", step: "1 of 2" });
    const listed = (await sandbox().files.list("/tmp")).find((entry) => entry.name === "meta.txt");
    expect(listed?.metadata).toEqual({ author: "Ada", step: "1 of 2" });
    const renamed = await sandbox().files.rename("/tmp/meta.txt", "/tmp/meta2.txt");
    expect(renamed.metadata).toEqual({ author: "Ada", step: "1 of 2" });
  });

  test("a second write replaces the metadata, or clears it", async () => {
    await sandbox().files.write("/tmp/meta3", "x", { metadata: { a: "1", b: "2" } });
    await sandbox().files.write("/tmp/meta3", "x", { metadata: { b: "3" } });
    expect((await sandbox().files.getInfo("/tmp/meta3")).metadata).toEqual({ b: "3" });
    await sandbox().files.write("/tmp/meta3", "x");
    expect((await sandbox().files.getInfo("/tmp/meta3")).metadata).toBeUndefined();
  });

  test("programs inside read and set metadata as extended attributes", async () => {
    await sandbox().files.write("/tmp/meta4", "x", { metadata: { from: "outside" } });
    const python =
      "import os; print(os.getxattr('/tmp/meta4', 'user.e2b.from').decode()); os.setxattr('/tmp/meta4', 'user.e2b.inside', b'yes')";
    expect((await sandbox().commands.run(`python3 -c "${python}"`)).stdout).toBe("outside\n");
    expect((await sandbox().files.getInfo("/tmp/meta4")).metadata).toEqual({ from: "outside", inside: "yes" });
  });

  test("many files in one call share their metadata", async () => {
    const files = ["a", "b"].map((name) => ({ path: `/tmp/meta-${name}`, data: name }));
    await sandbox().files.write(files, { metadata: { kind: "pair" } });
    expect((await sandbox().files.getInfo("/tmp/meta-b")).metadata).toEqual({ kind: "pair" });
  });

  test("metadata that does not fit is refused", async () => {
    const error = await refusal(sandbox().files.write("/tmp/meta5", "x", { metadata: { big: "v".repeat(5000) } }));
    expect(error).toBeInstanceOf(InvalidArgumentError);
  });
});

describe("a hundred megabytes", () => {
  test("a hundred megabytes go up and come down with equal hashes, streamed and in one piece", async () => {
    const bytes = new Uint8Array(randomBytes(100 << 20));
    const hash = sha(bytes);
    await sandbox().files.write("/tmp/big", new Blob([bytes]).stream(), { requestTimeoutMs: 240_000 });
    expect((await sandbox().commands.run("sha256sum /tmp/big", { timeoutMs: 240_000 })).stdout.slice(0, 64)).toBe(hash);
    const streamed = createHash("sha256");
    const patient = { format: "stream", requestTimeoutMs: 240_000 } as const;
    for await (const part of await sandbox().files.read("/tmp/big", patient)) streamed.update(part);
    expect(streamed.digest("hex")).toBe(hash);
    await sandbox().files.write("/tmp/big2", new Blob([bytes]), { requestTimeoutMs: 240_000 });
    expect(sha(await sandbox().files.read("/tmp/big2", { format: "bytes", requestTimeoutMs: 240_000 }))).toBe(hash);
    await sandbox().files.remove("/tmp/big");
    await sandbox().files.remove("/tmp/big2");
  }, 600_000);

  test("twenty uploads at once end whole", async () => {
    const pieces = Array.from({ length: 20 }, () => new Uint8Array(randomBytes(1 << 20)));
    await Promise.all(pieces.map((piece, index) => sandbox().files.write(`/tmp/at-once/${index}`, new Blob([piece]))));
    const { stdout } = await sandbox().commands.run("cd /tmp/at-once && sha256sum $(ls | sort -n) | cut -d' ' -f1");
    expect(stdout.trim().split("\n")).toEqual(pieces.map(sha));
  });
});

function sha(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
