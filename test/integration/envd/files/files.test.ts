/** Files of envd: metadata, whole and partial downloads, files in sticky directories, and files composed of pieces. */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { FileType } from "../../../../shared/envd-rpc/gen/filesystem_pb.js";
import { clientsOf } from "../running-envd.ts";
import { fileRequests, shell } from "./file-requests.ts";

const here = fileRequests();
const { at, get, put } = here;

const attribute = (path: string, name: string) =>
  execFileSync("python3", ["-c", "import os,sys; print(os.getxattr(sys.argv[1], sys.argv[2]).decode())", path, name], {
    stdio: "pipe",
    encoding: "utf8",
  }).trim();

describe("metadata", () => {
  test("comes with the upload, is returned, and is replaced whole by the next", async () => {
    const first = await put(at("f"), "1", { "x-metadata-Author": "ann", "x-metadata-kind": "draft" });
    expect(await first.json()).toEqual([
      { name: "f", path: at("f"), type: "file", metadata: { author: "ann", kind: "draft" } },
    ]);
    expect(attribute(at("f"), "user.e2b.author")).toBe("ann");
    const second = await put(at("f"), "2", { "x-metadata-kind": "final" });
    expect(await second.json()).toEqual([{ name: "f", path: at("f"), type: "file", metadata: { kind: "final" } }]);
    expect(() => attribute(at("f"), "user.e2b.author")).toThrow();
    expect(await (await put(at("f"), "3")).json()).toEqual([{ name: "f", path: at("f"), type: "file" }]);
    expect(() => attribute(at("f"), "user.e2b.kind")).toThrow();
  });

  test("that is too much is refused before anything is written", async () => {
    const response = await put(at("f"), "1", { "x-metadata-a": "x".repeat(4_097) });
    expect(response.status).toBe(400);
    expect(() => lstatSync(at("f"))).toThrow("ENOENT");
  });
});

describe("downloading", () => {
  test("a file comes with the headers that a browser needs", async () => {
    writeFileSync(at("page.html"), "<p>hello</p>");
    const { status, headers, body } = await get(at("page.html"));
    expect([status, body.toString()]).toEqual([200, "<p>hello</p>"]);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-length": "12",
      "content-disposition": 'inline; filename="page.html"',
      "accept-ranges": "bytes",
      vary: "Accept-Encoding",
      "access-control-allow-origin": "*",
    });
    expect(headers["content-encoding"]).toBeUndefined();
  });

  test("an empty file has the length zero", async () => {
    writeFileSync(at("empty"), "");
    const { headers, body } = await get(at("empty"), { "accept-encoding": "gzip" });
    expect([headers["content-length"], body.length]).toEqual(["0", 0]);
  });

  test("files of /proc and /sys are read to their end, although their reported size is wrong", async () => {
    const proc = await get("/proc/sys/kernel/random/boot_id");
    expect(proc.body.toString()).toMatch(/^[0-9a-f-]{36}\n$/);
    const sys = await get("/sys/kernel/mm/transparent_hugepage/enabled");
    expect(sys.headers["content-length"]).toBe(String(sys.body.length));
    expect(gunzipSync((await get("/proc/version", { "accept-encoding": "gzip" })).body).toString()).toContain("Linux");
  });

  test("a client that accepts gzip gets gzip", async () => {
    const text = "repeated ".repeat(100_000);
    writeFileSync(at("f"), text);
    const { headers, body } = await get(at("f"), { "accept-encoding": "gzip" });
    expect([headers["content-encoding"], headers["content-length"], gunzipSync(body).toString() === text]).toEqual([
      "gzip",
      undefined,
      true,
    ]);
    expect((await get(at("f"), { "accept-encoding": "identity;q=0, br" })).status).toBe(406);
  });

  test("a range of a small or a large file is returned", async () => {
    for (const size of [1_000, 3_000_000]) {
      const bytes = randomBytes(size);
      writeFileSync(at("f"), bytes);
      const part = await get(at("f"), { range: `bytes=${size - 500}-`, "accept-encoding": "gzip" });
      expect([part.status, part.headers["content-range"], part.body.equals(bytes.subarray(-500))]).toEqual([
        206,
        `bytes ${size - 500}-${size - 1}/${size}`,
        true,
      ]);
      const middle = await get(at("f"), { range: "bytes=100-599" });
      expect(middle.body.equals(bytes.subarray(100, 600))).toBe(true);
      const beyond = await get(at("f"), { range: `bytes=${size}-` });
      expect([beyond.status, beyond.headers["content-range"]]).toEqual([416, `bytes */${size}`]);
    }
  });

  test("an empty file is sent to clients that ask for a range of everything", async () => {
    writeFileSync(at("f"), "");
    const { status, headers, body } = await get(at("f"), { range: "bytes=0-" });
    expect([status, headers["content-length"], headers["content-range"], body.length]).toEqual([
      200,
      "0",
      undefined,
      0,
    ]);
  });

  test("a client that has the file already gets 304", async () => {
    writeFileSync(at("f"), "x");
    const { headers } = await get(at("f"));
    expect((await get(at("f"), { "if-none-match": String(headers["etag"]) })).status).toBe(304);
    expect((await get(at("f"), { "if-modified-since": String(headers["last-modified"]) })).status).toBe(304);
    expect((await get(at("f"), { "if-match": '"other"' })).status).toBe(412);
    writeFileSync(at("f"), "yy");
    expect((await get(at("f"), { "if-none-match": String(headers["etag"]) })).status).toBe(200);
  });

  test("HEAD returns only the headers", async () => {
    writeFileSync(at("f"), "12345");
    const { status, headers, body } = await get(at("f"), {}, "HEAD");
    expect([status, headers["content-length"], body.length]).toEqual([200, "5", 0]);
  });

  test("a path that is no file is refused with its kind", async () => {
    shell(`mkfifo ${at("pipe")}`);
    for (const [path, status, message] of [
      [at("missing"), 404, `path '${at("missing")}' does not exist`],
      ["missing.txt", 404, `path '${here.envd.home}/missing.txt' does not exist`],
      [here.dir, 400, `path '${here.dir}' is a directory`],
      [at("pipe"), 400, "not a regular file"],
      ["/dev/null", 400, "not a regular file"],
    ] as const) {
      const reply = await get(path);
      expect([reply.status, JSON.parse(reply.body.toString())]).toEqual([
        status,
        { code: status, message: expect.stringContaining(message) },
      ]);
    }
  });

  test("the download of a file that shrinks meanwhile is never complete", async () => {
    writeFileSync(at("f"), Buffer.alloc(50_000_000));
    const outcome = await new Promise<string>((resolve) => {
      const socket = connect(here.envd.port, "127.0.0.1", () => {
        socket.write(`GET /files?username=user&path=${at("f")} HTTP/1.1\r\nHost: x\r\n\r\n`);
        socket.once("data", () => {
          socket.pause();
          truncateSync(at("f"), 10);
          socket.resume();
        });
      });
      let size = 0;
      socket.on("data", (piece: Buffer) => (size += piece.length));
      socket.on("close", () => resolve(size < 50_000_000 ? "cut" : "whole"));
      socket.on("error", () => undefined);
    });
    expect(outcome).toBe("cut");
  });
});

test("in a sticky directory like /tmp a user's files and links work as elsewhere", async () => {
  const sticky = at("sticky");
  mkdirSync(sticky);
  chmodSync(sticky, 0o1777);
  const asUser = (line: string) => execFileSync("/bin/sh", ["-c", line], { uid: 1000, gid: 1000, cwd: sticky });
  asUser("echo theirs > f; ln -s f link; mkdir d; ln -s d dlink");
  expect((await get(join(sticky, "link"))).body.toString()).toBe("theirs\n");
  for (const name of ["f", "link"]) {
    expect((await put(join(sticky, name), `new ${name}`, { "x-metadata-by": name })).status).toBe(200);
    expect(readFileSync(join(sticky, "f"), "utf8")).toBe(`new ${name}`);
  }
  const { filesystem } = clientsOf(here.envd.url);
  expect((await filesystem.stat({ path: join(sticky, "link") })).entry).toMatchObject({
    type: FileType.FILE,
    metadata: { by: "link" },
  });
  expect((await filesystem.listDir({ path: join(sticky, "dlink") })).entries).toEqual([]);
  const { watcherId } = await filesystem.createWatcher({ path: join(sticky, "dlink"), includeEntry: true });
  asUser("echo x > d/inner");
  await expect
    .poll(async () => (await filesystem.getWatcherEvents({ watcherId })).events.map(({ entry }) => entry?.path))
    .toContain(join(sticky, "dlink/inner"));
  await filesystem.removeWatcher({ watcherId });
});

describe("composing", () => {
  const compose = async (body: unknown) => {
    const response = await fetch(`${here.envd.url}/files/compose`, { method: "POST", body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  };

  test("parts become one file in order, which belongs to the user, and the parts are removed", async () => {
    for (const name of ["1", "2", "3"]) writeFileSync(at(name), name.repeat(700_000));
    const destination = at("whole/file");
    const { status, body } = await compose({
      source_paths: [at("2"), at("1"), at("3")],
      destination,
      username: "user",
    });
    expect([status, body]).toEqual([200, { name: "file", path: destination, type: "file" }]);
    expect(readFileSync(destination, "utf8")).toBe("2".repeat(700_000) + "1".repeat(700_000) + "3".repeat(700_000));
    expect([lstatSync(destination).uid, lstatSync(destination).mode & 0o777]).toEqual([1000, 0o644]);
    expect(() => lstatSync(at("1"))).toThrow("ENOENT");
  });

  test("a mistake leaves everything as it was", async () => {
    writeFileSync(at("1"), "1");
    writeFileSync(at("old"), "old");
    for (const [body, status] of [
      [{ source_paths: [at("1"), at("missing")], destination: at("old") }, 404],
      [{ source_paths: [at("1"), here.dir], destination: at("old") }, 400],
      [{ source_paths: [at("1"), at("old")], destination: at("old") }, 400],
      [{ source_paths: [at("1")], destination: here.dir }, 400],
      [{ source_paths: [], destination: at("old") }, 400],
      [{ source_paths: [at("1")] }, 400],
      [{ source_paths: "x", destination: at("old") }, 400],
      [{ source_paths: [at("1")], destination: at("old"), username: "ghost" }, 401],
      [[], 400],
    ] as const)
      expect((await compose(body)).status).toBe(status);
    expect([readFileSync(at("1"), "utf8"), readFileSync(at("old"), "utf8")]).toEqual(["1", "old"]);
  });
});
