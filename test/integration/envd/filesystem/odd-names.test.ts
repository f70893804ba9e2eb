/** Names that are not UTF-8 are listed in a written form, by which every call reaches that very file and no other. */

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { EventType, FileType } from "../../../../shared/envd-rpc/gen/filesystem_pb.js";
import { as, sharedEnvd } from "../running-envd.ts";

const { envd, clients } = sharedEnvd();
const here = (script: string) => execFileSync("bash", ["-c", `cd ${envd.home} && ${script}`], { uid: 1000, gid: 1000 });
beforeEach(() => {
  execFileSync("bash", ["-c", `rm -rf ${envd.home}/*`]);
});
/** The names in a directory as the kernel has them, a character for each byte. */
const namesIn = (directory: string) => readdirSync(join(envd.home, directory), "latin1").toSorted();
const files = (query: string, init: RequestInit = {}) => fetch(`${envd.url}/files?username=user&${query}`, init);
const upload = (query: string, body: string) =>
  files(query, { method: "POST", headers: { "content-type": "application/octet-stream" }, body });

const ODD = "caf\uFFFDe9";

test("a listing has every name, in order, and each leads to its file", async () => {
  here(
    "mkdir d; cd d; echo bytes > $'caf\\xe9'; echo text > café; echo mark > caf\uFFFD; echo like > caf\uFFFDe9; echo plain > cafe",
  );
  const { entries } = await clients.filesystem.listDir({ path: "d" }, as("user"));
  expect(entries.map(({ name }) => name)).toEqual(["cafe", "café", "caf\uFFFD", ODD, "caf\uFFFDef\uFFFDbf\uFFFDbde9"]);
  const contents = entries.map(async ({ path }) => (await files(`path=${encodeURIComponent(path)}`)).text());
  expect(await Promise.all(contents)).toEqual(["plain\n", "text\n", "mark\n", "bytes\n", "like\n"]);
  const one = (await clients.filesystem.stat({ path: `d/${ODD}` }, as("user"))).entry;
  expect(one).toMatchObject({ name: ODD, path: `${envd.home}/d/${ODD}`, size: 6n, owner: "user", type: FileType.FILE });
});

test("ten thousand names, a third of them not UTF-8, are listed and removed", async () => {
  here(
    "mkdir many; cd many; python3 -c \"for i in range(10000): open(b'n%05d%s' % (i, (b'', b'\\xc3\\xbc', b'\\xe9\\xff')[i % 3]), 'w')\"",
  );
  const { entries } = await clients.filesystem.listDir({ path: "many" }, as("user"));
  expect([entries.length, new Set(entries.map(({ name }) => name)).size]).toEqual([10_000, 10_000]);
  expect(entries.slice(0, 3).map(({ name }) => name)).toEqual(["n00000", "n00001ü", "n00002\uFFFDe9\uFFFDff"]);
  await clients.filesystem.remove({ path: "many" }, as("user"));
  expect(existsSync(join(envd.home, "many"))).toBe(false);
});

describe("by its written form", () => {
  beforeEach(() => void here("mkdir -p $'d/dir\\xff/in'; echo 1 > $'d/dir\\xff/f\\xe9'; ln -s $'dir\\xff' d/link"));

  test("a file is written by it, and no other", async () => {
    expect((await upload(`path=${encodeURIComponent("d/dir\uFFFDff/f\uFFFDe9")}`, "new")).status).toBe(200);
    expect(namesIn("d")).toEqual(["dir\xff", "link"]);
    here("cd $'d/dir\\xff' && [ \"$(cat $'f\\xe9')\" = new ] && [ $(ls | wc -l) = 2 ]");
  });

  test("a tree is moved and removed, and a directory is made below it", async () => {
    await clients.filesystem.move({ source: "d/dir\uFFFDff", destination: "d/m\uFFFD80" }, as("user"));
    const made = await clients.filesystem.makeDir({ path: "d/m\uFFFD80/x\uFFFDfe/y" }, as("user"));
    expect(made.entry?.path).toBe(`${envd.home}/d/m\uFFFD80/x\uFFFDfe/y`);
    here("[ -d $'d/m\\x80/x\\xfe/y' ] && [ -f $'d/m\\x80/f\\xe9' ]");
    await clients.filesystem.remove({ path: "d/m\uFFFD80" }, as("user"));
    expect(namesIn("d")).toEqual(["link"]);
  });

  test("a link says where it leads, and is listed through", async () => {
    const { entry } = await clients.filesystem.stat({ path: "d/link" }, as("user"));
    expect(entry).toMatchObject({ symlinkTarget: `${envd.home}/d/dir\uFFFDff`, type: FileType.DIRECTORY });
    const { entries } = await clients.filesystem.listDir({ path: "d/link" }, as("user"));
    expect(entries.map(({ name }) => name)).toEqual(["f\uFFFDe9", "in"]);
  });

  test("a command works in the directory", async () => {
    const stream = clients.process.start(
      { process: { cmd: "ls", args: [], envs: {}, cwd: `${envd.home}/d/dir\uFFFDff` }, stdin: false },
      as("user"),
    );
    let output = "";
    for await (const { event } of stream)
      if (event?.event.case === "data") output += Buffer.from(event.event.value.output.value ?? []).toString("latin1");
    expect(output).toBe("f\xe9\nin\n");
  });

  test("files are composed", async () => {
    const body = JSON.stringify({ source_paths: ["d/dir\uFFFDff/f\uFFFDe9"], destination: "d/all\uFFFDe9" });
    expect((await fetch(`${envd.url}/files/compose?username=user`, { method: "POST", body })).status).toBe(200);
    here("[ \"$(cat $'d/all\\xe9')\" = 1 ] && [ ! -e $'d/dir\\xff/f\\xe9' ]");
  });
});

test("changes below such a directory are watched by the names of the listing", async () => {
  here("mkdir -p $'w/dir\\xff'");
  const leaving = new AbortController();
  const options = { ...as("user"), signal: leaving.signal };
  const stream = clients.filesystem.watchDir({ path: "w", recursive: true, includeEntry: true }, options);
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  here("echo > $'w/dir\\xff/f\\xe9'; mkdir $'w/new\\x80'");
  const seen: [string, EventType, string | undefined][] = [];
  while (!seen.some(([name]) => name === "new\uFFFD80")) {
    const { event } = (await events.next()).value as { event: { case: string; value: never } };
    const { name, type, entry } = event.value as { name: string; type: EventType; entry?: { path: string } };
    seen.push([name, type, entry?.path]);
  }
  expect(seen[0]).toEqual(["dir\uFFFDff/f\uFFFDe9", EventType.CREATE, `${envd.home}/w/dir\uFFFDff/f\uFFFDe9`]);
  here("echo > $'w/new\\x80/late\\xe9'");
  for (let name = ""; name !== "new\uFFFD80/late\uFFFDe9"; )
    name = ((await events.next()).value as { event: { value: { name: string } } }).event.value.name;
  leaving.abort();
});

describe("a request that sends bytes", () => {
  test("percent-encoded writes and reads the file of that name", async () => {
    expect((await upload("path=b%E9", "encoded")).status).toBe(200);
    expect(namesIn("")).toEqual(["b\xe9"]);
    expect(await (await files("path=b%E9")).text()).toBe("encoded");
  });

  test("in the names of a form writes the files of those names", async () => {
    const body = Buffer.from(
      '--x\r\nContent-Disposition: form-data; name="file"; filename="up/f\xe9"\r\n\r\none\r\n' +
        '--x\r\nContent-Disposition: form-data; name="file"; filename="up/\xc3\xbc"\r\n\r\ntwo\r\n--x--\r\n',
      "latin1",
    );
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    const answer = await files("", { method: "POST", headers, body });
    expect(((await answer.json()) as { name: string }[]).map(({ name }) => name)).toEqual(["f\uFFFDe9", "ü"]);
    expect(namesIn("up")).toEqual(["f\xe9", "\xc3\xbc"].toSorted());
  });

  test("in JSON is refused, and writes nothing", async () => {
    here("echo 1 > a");
    const compose = (body: Buffer) => fetch(`${envd.url}/files/compose?username=user`, { method: "POST", body });
    const bytes = Buffer.from('{"source_paths":["a"],"destination":"c\xe9"}', "latin1");
    const half = Buffer.from('{"source_paths":["a"],"destination":"c\\ud800"}');
    expect([(await compose(bytes)).status, (await compose(half)).status]).toEqual([400, 400]);
    expect(namesIn("")).toEqual(["a"]);
    await expect(clients.filesystem.makeDir({ path: "m\ud800" }, as("user"))).rejects.toThrow(/UTF-?8/i);
    expect(namesIn("")).toEqual(["a"]);
  });
});
