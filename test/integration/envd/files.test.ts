import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FileType } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import { clientsOf, type RunningEnvd, runEnvd } from "./running-envd.ts";

let envd: RunningEnvd;
let count = 0;
let dir: string;
beforeAll(async () => {
  envd = await runEnvd();
});
afterAll(() => envd.stop());
beforeEach(() => {
  count += 1;
  dir = join(envd.home, `f${count}`);
  mkdirSync(dir);
});

const at = (name: string) => join(dir, name);
const urlOf = (query: Record<string, string>) =>
  `${envd.url}/files?${new URLSearchParams({ username: "user", ...query }).toString()}`;
const OCTETS = { "content-type": "application/octet-stream" };
const put = (path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
  fetch(urlOf({ path }), { method: "POST", headers: { ...OCTETS, ...headers }, body });
const shell = (line: string) => execFileSync("/bin/sh", ["-c", line]);
async function onSmallDisk<Result>(use: (mount: string) => Promise<Result>): Promise<Result> {
  const mount = at("small");
  mkdirSync(mount);
  shell(`mount -t tmpfs -o size=1m tmpfs ${mount}`);
  try {
    return await use(mount);
  } finally {
    shell(`umount ${mount}`);
  }
}
const attribute = (path: string, name: string) =>
  execFileSync("python3", ["-c", "import os,sys; print(os.getxattr(sys.argv[1], sys.argv[2]).decode())", path, name], {
    stdio: "pipe",
    encoding: "utf8",
  }).trim();

interface Reply {
  readonly status: number | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

/** Without a client's own ideas about encodings. */
function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const call = request(urlOf({ path }), { headers, method }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) }),
      );
      response.on("error", reject);
    });
    call.on("error", reject);
    call.end();
  });
}

describe("uploading bytes", () => {
  test("makes parents and the file, for the user, and says exactly this", async () => {
    const response = await put(at("a/b/ü.txt"), "content");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual([{ name: "ü.txt", path: at("a/b/ü.txt"), type: "file" }]);
    const [file, parent] = [lstatSync(at("a/b/ü.txt")), lstatSync(at("a"))];
    expect([file.mode & 0o777, file.uid, file.gid, parent.mode & 0o777, parent.uid]).toEqual([
      0o644, 1000, 1000, 0o755, 1000,
    ]);
    expect(readFileSync(at("a/b/ü.txt"), "utf8")).toBe("content");
  });

  test("a relative path is from home, and the user is the default one", async () => {
    const response = await fetch(`${envd.url}/files?path=f${count}/r.txt`, {
      method: "POST",
      headers: OCTETS,
      body: "x",
    });
    expect(await response.json()).toEqual([{ name: "r.txt", path: at("r.txt"), type: "file" }]);
  });

  test("an existing file is emptied first, keeps its mode and its place", async () => {
    writeFileSync(at("f"), "something longer", { mode: 0o750 });
    chmodSync(at("f"), 0o750);
    const before = lstatSync(at("f")).ino;
    await put(at("f"), "short");
    const after = lstatSync(at("f"));
    expect([readFileSync(at("f"), "utf8"), after.ino, after.mode & 0o777, after.uid]).toEqual([
      "short",
      before,
      0o750,
      1000,
    ]);
  });

  test("through a link the target is written", async () => {
    symlinkSync("target", at("link"));
    await put(at("link"), "x");
    expect([lstatSync(at("link")).isSymbolicLink(), readFileSync(at("target"), "utf8")]).toEqual([true, "x"]);
  });

  test("an empty body makes an empty file", async () => {
    expect((await put(at("empty"), "")).status).toBe(200);
    expect(lstatSync(at("empty")).size).toBe(0);
  });

  test("gzip is undone", async () => {
    const bytes = Buffer.from("repeated ".repeat(20_000));
    expect((await put(at("f"), gzipSync(bytes), { "content-encoding": "gzip" })).status).toBe(200);
    expect(readFileSync(at("f")).equals(bytes)).toBe(true);
  });

  test.each([
    ["damaged gzip", { "content-encoding": "gzip" }, "not gzip at all", "the body is not valid gzip"],
    ["an unknown encoding", { "content-encoding": "zstd" }, "x", "unsupported content encoding 'zstd'"],
    ["an unknown content type", { "content-type": "text/plain" }, "x", "unsupported content type"],
  ])("%s is refused", async (_, headers, body, message) => {
    const response = await put(at("f"), body, headers);
    expect([response.status, await response.json()]).toEqual([
      400,
      { code: 400, message: expect.stringContaining(message) },
    ]);
  });

  test("a directory, a pipe and no path are refused", async () => {
    shell(`mkfifo ${at("pipe")}`);
    for (const [path, message] of [
      [dir, "path is a directory"],
      [at("pipe"), "not a regular file"],
      ["", "path is required"],
      [at("f\0g"), "zero byte"],
    ] as const) {
      const response = await put(path, "x");
      expect([response.status, await response.json()]).toEqual([
        400,
        { code: 400, message: expect.stringContaining(message) },
      ]);
    }
  });

  test("an unknown user is refused by name", async () => {
    const response = await fetch(urlOf({ path: at("f"), username: "ghost" }), {
      method: "POST",
      headers: OCTETS,
      body: "x",
    });
    expect([response.status, await response.json()]).toEqual([
      401,
      { code: 401, message: expect.stringContaining("error looking up user 'ghost'") },
    ]);
  });

  test("a hundred megabytes arrive as they were, in both directions", async () => {
    const bytes = Buffer.concat(Array.from({ length: 25 }, () => randomBytes(4 * 1024 * 1024)));
    const hash = createHash("sha256").update(bytes).digest("hex");
    const growth = process.memoryUsage.rss();
    expect((await put(at("big"), bytes)).status).toBe(200);
    const { body, headers } = await get(at("big"));
    expect(createHash("sha256").update(body).digest("hex")).toBe(hash);
    expect(headers["content-length"]).toBe(String(bytes.length));
    // The test itself holds the bytes twice or so; envd, in the same process, must not add its own copy.
    expect(process.memoryUsage.rss() - growth).toBeLessThan(4 * bytes.length);
  });

  test("a full disk has an error that says so", async () => {
    const response = await onSmallDisk((mount) => put(join(mount, "f"), randomBytes(8 * 1024 * 1024)));
    expect([response.status, await response.json()]).toEqual([
      507,
      { code: 507, message: "not enough disk space available" },
    ]);
  });

  test.each([
    ["bytes", "application/octet-stream", "", ""],
    [
      "a form",
      "multipart/form-data; boundary=XX",
      '--XX\r\nContent-Disposition: form-data; name="file"\r\n\r\n',
      "\r\n--XX--\r\n",
    ],
  ])("a full disk is reported as such on a connection that still works, as %s", async (_, type, before, after) => {
    const body = Buffer.concat([Buffer.from(before), Buffer.alloc(16 * 1024 * 1024), Buffer.from(after)]);
    const text = await onSmallDisk(async (mount) => {
      const socket = connect({ port: envd.port, host: "127.0.0.1" }).setEncoding("latin1");
      const { pathname, search } = new URL(urlOf({ path: join(mount, "f") }));
      const common = `Host: x\r\nContent-Type: ${type}\r\n`;
      socket.write(`POST ${pathname}${search} HTTP/1.1\r\n${common}Content-Length: ${body.length}\r\n\r\n`);
      socket.write(body);
      socket.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
      let received = "";
      socket.on("data", (some: string) => (received += some));
      try {
        await expect.poll(() => received, { timeout: 5_000 }).toMatch(/ 204 No Content\r\n/);
      } finally {
        socket.destroy();
      }
      return received;
    });
    expect(text).toMatch(/^HTTP\/1.1 507 /);
  });

  test("an upload that its client cuts off leaves the first half, and envd works on", async () => {
    await new Promise<void>((resolve) => {
      const call = request(urlOf({ path: at("half") }), {
        method: "POST",
        headers: { ...OCTETS, "content-length": "1000000" },
      });
      call.on("error", () => resolve());
      call.write("x".repeat(500_000), () => setTimeout(() => call.destroy(), 50));
    });
    await expect.poll(() => lstatSync(at("half"), { throwIfNoEntry: false })?.size ?? -1).toBeGreaterThanOrEqual(0);
    expect((await put(at("next"), "x")).status).toBe(200);
  });
});

describe("uploading a form", () => {
  const form = (files: Record<string, string>, query: Record<string, string> = {}) => {
    const data = new FormData();
    for (const [name, body] of Object.entries(files)) data.append("file", new Blob([body]), name);
    return fetch(urlOf(query), { method: "POST", body: data });
  };

  test("many files go where their names say, directories included", async () => {
    const response = await form({ [`f${count}/d/ü.txt`]: "one", [at("e.txt")]: "two", [at("empty")]: "" });
    expect(await response.json()).toEqual([
      { name: "ü.txt", path: at("d/ü.txt"), type: "file" },
      { name: "e.txt", path: at("e.txt"), type: "file" },
      { name: "empty", path: at("empty"), type: "file" },
    ]);
    expect(readFileSync(at("d/ü.txt"), "utf8")).toBe("one");
  });

  test("with a path the file's own name does not matter, nor whether it has one", async () => {
    expect(await (await form({ "other.txt": "one" }, { path: at("mine") })).json()).toEqual([
      { name: "mine", path: at("mine"), type: "file" },
    ]);
    const data = new FormData();
    data.append("file", "text");
    data.append("note", "ignored");
    expect((await fetch(urlOf({ path: at("field") }), { method: "POST", body: data })).status).toBe(200);
    expect(readFileSync(at("field"), "utf8")).toBe("text");
  });

  test("one place twice is a mistake", async () => {
    const data = new FormData();
    data.append("file", new Blob(["1"]), at("same"));
    data.append("file", new Blob(["2"]), `${dir}/./same`);
    const response = await fetch(urlOf({}), { method: "POST", body: data });
    expect([response.status, await response.json()]).toEqual([
      400,
      { code: 400, message: expect.stringContaining("given twice") },
    ]);
  });

  test("a file without a name, and a body that is no form, are refused", async () => {
    const data = new FormData();
    data.append("file", "text");
    expect((await fetch(urlOf({}), { method: "POST", body: data })).status).toBe(400);
    const broken = await fetch(urlOf({ path: at("f") }), {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=x" },
      body: "--y",
    });
    expect([broken.status, await broken.json()]).toEqual([
      400,
      { code: 400, message: expect.stringContaining("malformed multipart body") },
    ]);
  });
});

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
  test("a file, with what a browser needs to know", async () => {
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

  test("files of the kernel are read to their end, not to their stated size", async () => {
    const proc = await get("/proc/sys/kernel/random/boot_id");
    expect(proc.body.toString()).toMatch(/^[0-9a-f-]{36}\n$/);
    const sys = await get("/sys/kernel/mm/transparent_hugepage/enabled");
    expect(sys.headers["content-length"]).toBe(String(sys.body.length));
    expect(gunzipSync((await get("/proc/version", { "accept-encoding": "gzip" })).body).toString()).toContain("Linux");
  });

  test("gzip for a client that accepts it", async () => {
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

  test("parts of it, small or large", async () => {
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

  test("not again what the client has", async () => {
    writeFileSync(at("f"), "x");
    const { headers } = await get(at("f"));
    expect((await get(at("f"), { "if-none-match": String(headers["etag"]) })).status).toBe(304);
    expect((await get(at("f"), { "if-modified-since": String(headers["last-modified"]) })).status).toBe(304);
    expect((await get(at("f"), { "if-match": '"other"' })).status).toBe(412);
    writeFileSync(at("f"), "yy");
    expect((await get(at("f"), { "if-none-match": String(headers["etag"]) })).status).toBe(200);
  });

  test("only its headers for HEAD", async () => {
    writeFileSync(at("f"), "12345");
    const { status, headers, body } = await get(at("f"), {}, "HEAD");
    expect([status, headers["content-length"], body.length]).toEqual([200, "5", 0]);
  });

  test("a path that is no file is refused with its kind", async () => {
    shell(`mkfifo ${at("pipe")}`);
    for (const [path, status, message] of [
      [at("missing"), 404, `path '${at("missing")}' does not exist`],
      ["missing.txt", 404, `path '${envd.home}/missing.txt' does not exist`],
      [dir, 400, `path '${dir}' is a directory`],
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

  test("a file that shrinks meanwhile is never taken for complete", async () => {
    writeFileSync(at("f"), Buffer.alloc(50_000_000));
    const outcome = await new Promise<string>((resolve) => {
      const socket = connect(envd.port, "127.0.0.1", () => {
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
  const { filesystem } = clientsOf(envd.url);
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
    const response = await fetch(`${envd.url}/files/compose`, { method: "POST", body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  };

  test("pieces become one file in order, for the user, and are gone", async () => {
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
      [{ source_paths: [at("1"), dir], destination: at("old") }, 400],
      [{ source_paths: [at("1"), at("old")], destination: at("old") }, 400],
      [{ source_paths: [at("1")], destination: dir }, 400],
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

test("four uploads at once into a directory that is not there yet", async () => {
  const replies = await Promise.all(["a", "b", "c", "d"].map((name) => put(at(`new/deep/${name}`), name)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});
