/** Uploads to envd, as bytes or as a form: the place and the owner of each file, and refusals. */

import { createHash, randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { fileRequests, OCTETS, shell } from "./file-requests.ts";

const here = fileRequests();
const { at, get, put, urlOf } = here;

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

describe("uploading bytes", () => {
  test("makes the file and its parents for the user, and answers with exactly its name, path and type", async () => {
    const response = await put(at("a/b/ü.txt"), "content");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual([{ name: "ü.txt", path: at("a/b/ü.txt"), type: "file" }]);
    const [file, parent] = [lstatSync(at("a/b/ü.txt")), lstatSync(at("a"))];
    expect([file.mode & 0o777, file.uid, file.gid, parent.mode & 0o777, parent.uid]).toEqual([
      0o644, 1000, 1000, 0o755, 1000,
    ]);
    expect(readFileSync(at("a/b/ü.txt"), "utf8")).toBe("content");
  });

  test("question marks in a path that a client has not encoded are letters of the name", async () => {
    const response = await fetch(`${here.envd.url}/files?path=${at("what?now?.txt")}&username=user`, {
      method: "POST",
      headers: OCTETS,
      body: "x",
    });
    expect(await response.json()).toEqual([{ name: "what?now?.txt", path: at("what?now?.txt"), type: "file" }]);
    expect(readFileSync(at("what?now?.txt"), "utf8")).toBe("x");
  });

  test("an upload to a relative path goes to the home of the default user", async () => {
    const response = await fetch(`${here.envd.url}/files?path=${here.name}/r.txt`, {
      method: "POST",
      headers: OCTETS,
      body: "x",
    });
    expect(await response.json()).toEqual([{ name: "r.txt", path: at("r.txt"), type: "file" }]);
  });

  test("an existing file is overwritten in place and keeps its mode", async () => {
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

  test("an upload through a link writes the target", async () => {
    symlinkSync("target", at("link"));
    await put(at("link"), "x");
    expect([lstatSync(at("link")).isSymbolicLink(), readFileSync(at("target"), "utf8")]).toEqual([true, "x"]);
  });

  test("an empty body makes an empty file", async () => {
    expect((await put(at("empty"), "")).status).toBe(200);
    expect(lstatSync(at("empty")).size).toBe(0);
  });

  test("a compressed body is unpacked", async () => {
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

  test("an upload to a directory, to a pipe or without a path is refused", async () => {
    shell(`mkfifo ${at("pipe")}`);
    for (const [path, message] of [
      [here.dir, "path is a directory"],
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
    // The test itself holds the bytes about twice; envd, in the same process, must not add a copy of its own.
    expect(process.memoryUsage.rss() - growth).toBeLessThan(4 * bytes.length);
  });

  test("an upload to a full disk fails with an error that names the full disk", async () => {
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
      const socket = connect({ port: here.envd.port, host: "127.0.0.1" }).setEncoding("latin1");
      const { pathname, search } = new URL(urlOf({ path: join(mount, "f") }));
      const common = `Host: x\r\nContent-Type: ${type}\r\n`;
      socket.write(`POST ${pathname}${search} HTTP/1.1\r\n${common}Content-Length: ${body.length}\r\n\r\n`);
      socket.write(body);
      socket.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
      let received = "";
      socket.on("data", (some: string) => (received += some));
      try {
        await expect.poll(() => received).toMatch(/ 204 No Content\r\n/);
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
    const response = await form({ [`${here.name}/d/ü.txt`]: "one", [at("e.txt")]: "two", [at("empty")]: "" });
    expect(await response.json()).toEqual([
      { name: "ü.txt", path: at("d/ü.txt"), type: "file" },
      { name: "e.txt", path: at("e.txt"), type: "file" },
      { name: "empty", path: at("empty"), type: "file" },
    ]);
    expect(readFileSync(at("d/ü.txt"), "utf8")).toBe("one");
  });

  test("with a path in the query the file's own name is ignored and may be missing", async () => {
    expect(await (await form({ "other.txt": "one" }, { path: at("mine") })).json()).toEqual([
      { name: "mine", path: at("mine"), type: "file" },
    ]);
    const data = new FormData();
    data.append("file", "text");
    data.append("note", "ignored");
    expect((await fetch(urlOf({ path: at("field") }), { method: "POST", body: data })).status).toBe(200);
    expect(readFileSync(at("field"), "utf8")).toBe("text");
  });

  test("a form with two files for one path is refused", async () => {
    const data = new FormData();
    data.append("file", new Blob(["1"]), at("same"));
    data.append("file", new Blob(["2"]), `${here.dir}/./same`);
    const response = await fetch(urlOf({}), { method: "POST", body: data });
    expect([response.status, await response.json()]).toEqual([
      400,
      { code: 400, message: expect.stringContaining("given twice") },
    ]);
  });

  test("a form whose files have another name than 'file' is refused, and an empty form is not", async () => {
    const data = new FormData();
    data.append("upload", new Blob(["1"]), at("f"));
    const response = await fetch(urlOf({}), { method: "POST", body: data });
    expect([response.status, await response.json()]).toEqual([
      400,
      { code: 400, message: expect.stringContaining("no part 'file', but 'upload'") },
    ]);
    expect(await (await form({})).json()).toEqual([]);
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

test("four uploads at once into a missing directory succeed, all of them", async () => {
  const replies = await Promise.all(["a", "b", "c", "d"].map((name) => put(at(`new/deep/${name}`), name)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

describe("an upload with If-Match", () => {
  const tagOf = async (path: string) => String((await get(path)).headers["etag"]);

  test("replaces the version that it names, and answers with the tag of the next one", async () => {
    writeFileSync(at("f"), "first");
    const saved = await put(at("f"), "second", { "if-match": await tagOf(at("f")) });
    expect([saved.status, saved.headers.get("etag")]).toEqual([200, await tagOf(at("f"))]);
    expect(await saved.json()).toEqual([{ name: "f", path: at("f"), type: "file" }]);
    const again = await put(at("f"), "third", { "if-match": String(saved.headers.get("etag")) });
    expect([again.status, readFileSync(at("f"), "utf8")]).toEqual([200, "third"]);
  });

  test("is refused when somebody has changed the file, and changes nothing of it", async () => {
    writeFileSync(at("f"), "mine");
    const tag = await tagOf(at("f"));
    expect((await put(at("f"), "theirs!")).status).toBe(200);
    const theirs = lstatSync(at("f"), { bigint: true });
    const refused = await put(at("f"), "mine, changed", { "if-match": tag });
    expect([refused.status, await refused.json()]).toEqual([
      412,
      { code: 412, message: expect.stringContaining(`path '${at("f")}' is not as it was`) as string },
    ]);
    expect(readFileSync(at("f"), "utf8")).toBe("theirs!");
    expect(lstatSync(at("f"), { bigint: true }).ctimeNs).toBe(theirs.ctimeNs);
  });

  test("makes neither a file nor its directory where there is none", async () => {
    for (const path of [at("gone"), at("gone/deep"), at("gone/deep/f")])
      expect((await put(path, "x", { "if-match": "*" })).status).toBe(412);
    expect(() => lstatSync(at("gone"))).toThrow("ENOENT");
  });

  test("takes any version for a star, and needs the path of one file", async () => {
    writeFileSync(at("f"), "first");
    expect((await put(at("f"), "second", { "if-match": "*" })).status).toBe(200);
    const form = new FormData();
    form.append("file", new Blob(["x"]), at("f"));
    const headers = { "if-match": "*" };
    expect((await fetch(urlOf({}), { method: "POST", body: form, headers })).status).toBe(400);
    expect((await fetch(urlOf({ path: at("f") }), { method: "POST", body: form, headers })).status).toBe(200);
    expect(readFileSync(at("f"), "utf8")).toBe("x");
  });

  test("without it nothing is asked and no tag is told", async () => {
    const plain = await put(at("f"), "x");
    expect([plain.status, plain.headers.get("etag")]).toEqual([200, null]);
  });
});
