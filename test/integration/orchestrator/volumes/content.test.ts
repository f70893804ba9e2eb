/** The content of volumes: through the orchestrator and a node's own code, with the SDK and without. */

import { once } from "node:events";
import { existsSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { Volume, VolumePathNotFoundError } from "e2b";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runCommand } from "../../../../agent/host/command.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { until } from "../../../support/runner/until.ts";
import { upAndDown } from "../../../support/volumes/large-file.ts";

/** In CI less than the gigabyte that `SVC_TEST_VOLUME_MB=1024` tries. */
const MEGABYTES = Number(process.env["SVC_TEST_VOLUME_MB"] ?? "32");

let cluster: Cluster;
let volume: Volume;
let files: string;

beforeAll(async () => {
  cluster = await startCluster();
  process.env["E2B_VOLUME_API_URL"] = cluster.url;
  volume = await Volume.create("content", { apiUrl: cluster.url, apiKey: cluster.key });
  files = join(cluster.agent.volumes.folder, volume.volumeId, "files");
});
afterAll(async () => {
  delete process.env["E2B_VOLUME_API_URL"];
  await cluster.stop();
});

interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly text: string;
}

async function ask(
  method: string,
  route: string,
  query: Record<string, string>,
  more: RequestInit = {},
): Promise<Reply> {
  const url = `${cluster.url}/volumecontent/${volume.volumeId}/${route}?${new URLSearchParams(query).toString()}`;
  const headers = { authorization: `Bearer ${volume.token}`, ...(more.headers as Record<string, string>) };
  const response = await fetch(url, { method, ...more, headers });
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  return { status: response.status, body, text };
}

const put = (path: string, body: string, query: Record<string, string> = {}) =>
  ask("PUT", "file", { path, ...query }, { body, headers: { "content-type": "application/octet-stream" } });

test("the SDK writes, reads, lists, changes and removes files of a volume", async () => {
  const made = await volume.makeDir("/a/b", { force: true });
  expect(made).toMatchObject({ name: "b", path: "/a/b", type: "directory", mode: 0o755 });
  const written = await volume.writeFile("/a/b/ü.txt", "content", { uid: 1000, gid: 1000, mode: 0o640 });
  expect(written).toMatchObject({ name: "ü.txt", path: "/a/b/ü.txt", size: 7, type: "file", uid: 1000, mode: 0o640 });
  expect(await volume.readFile("/a/b/ü.txt")).toBe("content");
  await volume.writeFile("/a/empty", "");
  expect(await volume.readFile("/a/empty")).toBe("");
  const names = (entries: readonly { readonly path: string }[]) => entries.map(({ path }) => path).sort();
  expect(names(await volume.list("/a"))).toEqual(["/a/b", "/a/empty"]);
  expect(names(await volume.list("/", { depth: 3 }))).toEqual(["/a", "/a/b", "/a/b/ü.txt", "/a/empty"]);
  expect((await volume.updateMetadata("/a/b/ü.txt", { mode: 0o600, uid: 5 })).uid).toBe(5);
  expect(await volume.getInfo("/a/b/ü.txt")).toMatchObject({ uid: 5, gid: 1000, mode: 0o600 });
  await volume.remove("/a");
  expect([await volume.exists("/a"), await readdir(join(files, "..", "tmp"))]).toEqual([false, []]);
  await expect(volume.readFile("/a/b/ü.txt")).rejects.toThrow(VolumePathNotFoundError);
  expect(await volume.list("/")).toEqual([]);
});

test("every status of the contract has a string as code", async () => {
  await put("/file", "1");
  await mkdir(join(files, "directory"));
  const cases: [string, string, Record<string, string>, RequestInit, number][] = [
    ["GET", "path", { path: "/none" }, {}, 404],
    ["PATCH", "path", { path: "/none" }, { body: "{}" }, 404],
    ["PATCH", "path", { path: "/file" }, { body: '{"mode":99999}' }, 400],
    ["PATCH", "path", { path: "/file" }, { body: "{" }, 400],
    ["PATCH", "path", { path: "/file" }, { body: '{"uid":-1}' }, 400],
    ["DELETE", "path", { path: "/none" }, {}, 404],
    ["DELETE", "path", { path: "/" }, {}, 400],
    ["GET", "dir", { path: "/none" }, {}, 404],
    ["GET", "dir", { path: "/file" }, {}, 400],
    ["GET", "dir", { path: "/", depth: "0" }, {}, 400],
    ["POST", "dir", { path: "/directory" }, {}, 409],
    ["POST", "dir", { path: "/file", force: "true" }, {}, 409],
    ["POST", "dir", { path: "/none/below" }, {}, 404],
    ["POST", "dir", { path: "/file/below", force: "true" }, {}, 409],
    ["GET", "file", { path: "/none" }, {}, 404],
    ["GET", "file", { path: "/directory" }, {}, 404],
    ["PUT", "file", { path: "/file" }, { body: "2" }, 409],
    ["PUT", "file", { path: "/directory", force: "true" }, { body: "2" }, 409],
    ["PUT", "file", { path: "/none/below" }, { body: "2" }, 404],
    ["PUT", "file", { path: "/" }, { body: "2" }, 409],
    ["GET", "path", {}, {}, 400],
    ["GET", "path", { path: "/a\0b" }, {}, 400],
    ["GET", "path", { path: "/x/".repeat(2_100) }, {}, 400],
  ];
  const { paths } = (await (await fetch(`${cluster.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { responses: object }>>;
  };
  for (const [method, route, query, more, status] of cases) {
    const at = `${method} ${route} ${JSON.stringify(query).slice(0, 80)}`;
    const answer = await ask(method, route, query, more);
    expect([at, answer.status, (answer.body as { code: unknown }).code]).toEqual([at, status, String(status)]);
    const described = paths[`/volumecontent/{volumeID}/${route}`]?.[method.toLowerCase()]?.responses;
    expect(Object.keys(described ?? {}), at).toContain(String(status));
  }
  for (const [method, route] of [
    ["GET", "no-such-route"],
    ["POST", "file"],
  ] as const)
    expect((await ask(method, route, {})).body).toMatchObject({ code: "404" });
  expect((await ask("POST", "dir", { path: "/directory", force: "true" })).status).toBe(201);
  expect((await put("/file", "22", { force: "true" })).body).toMatchObject({ size: 2 });
  expect((await ask("DELETE", "path", { path: "/directory" })).status).toBe(204);
});

test("only this volume's own, unexpired token opens it", async () => {
  const other = await Volume.create("other", { apiUrl: cluster.url, apiKey: cluster.key });
  const [head = "", body = "", signature = ""] = volume.token.split(".");
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  const cases: [string | undefined, number][] = [
    [undefined, 401],
    ["nonsense", 401],
    [cluster.key, 401],
    [`${none}.${body}.`, 401],
    [`${head}.${body}.${signature.slice(0, -3)}abc`, 401],
    [other.token, 403],
  ];
  for (const [token, status] of cases) {
    const headers = { authorization: token === undefined ? "" : `Bearer ${token}` };
    const answer = await ask("GET", "dir", { path: "/" }, { headers });
    expect([token, answer.status, (answer.body as { code: string }).code]).toEqual([token, status, String(status)]);
  }
  await Volume.destroy(other.volumeId, { apiUrl: cluster.url, apiKey: cluster.key });
  await expect(other.list("/")).rejects.toThrow("not found");
});

test(`${MEGABYTES} MB go up and come down unchanged, with flat memory`, { timeout: 120_000 }, async () => {
  const before = process.memoryUsage().arrayBuffers;
  await upAndDown(volume, MEGABYTES);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(256 * 1024 * 1024);
});

test("an upload that is cut leaves the old file, and nothing beside it", async () => {
  await put("/kept", "old");
  const { hostname, port } = new URL(cluster.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(
    `PUT /volumecontent/${volume.volumeId}/file?path=/kept&force=true HTTP/1.1\r\nhost: x\r\n` +
      `authorization: Bearer ${volume.token}\r\ncontent-type: application/octet-stream\r\ncontent-length: 1000000\r\n\r\nnew`,
  );
  const writes = async () =>
    (await runCommand("pgrep", ["-f", `${volume.volumeId} write kept`]).catch(() => "")) !== "";
  await until(writes, { what: "the upload's program", timeoutMs: 30_000 });
  socket.destroy();
  await until(async () => !(await writes()), { what: "the end of the upload's program", timeoutMs: 30_000 });
  expect(await volume.readFile("/kept")).toBe("old");
  expect(await readdir(join(files, "..", "tmp"))).toEqual([]);
});

test("a project that an operator has disabled reads and deletes content only", async () => {
  await put("/standing", "x");
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
  const path = `/admin/projects/${cluster.teamId}`;
  expect((await cluster.ask("POST", `${path}/disable`, { ...admin, body: { reason: "unpaid" } })).status).toBeLessThan(
    300,
  );
  onTestFinished(async () => void (await cluster.ask("POST", `${path}/enable`, admin)));
  expect((await put("/standing", "y", { force: "true" })).body).toMatchObject({
    code: "403",
    message: "team is blocked: unpaid",
  });
  expect(await volume.readFile("/standing")).toBe("x");
  await volume.remove("/standing");
});

test("a project's requests for content are limited, with Retry-After, apart from its other calls and from other projects", async () => {
  const { key } = await cluster.addProject("Unlimited");
  const other = await Volume.create("of-another-project", { apiUrl: cluster.url, apiKey: key });
  await cluster.restart({ rateLimitContentPerSecond: 1 });
  onTestFinished(() => cluster.restart({ rateLimitContentPerSecond: 200 }));
  const list = (of: Volume) =>
    fetch(`${cluster.url}/volumecontent/${of.volumeId}/dir?path=/`, {
      headers: { authorization: `Bearer ${of.token}` },
    });
  const answers = await Promise.all(Array.from({ length: 20 }, () => list(volume)));
  const [limited] = answers.filter(({ status }) => status === 429);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
  expect(limited?.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(limited?.headers.get("ratelimit-limit")).toBe("2");
  expect(await limited?.json()).toMatchObject({ code: "429", message: "Rate limit exceeded" });
  expect((await list(other)).status).toBe(200);
  expect((await cluster.ask("GET", "/volumes")).status).toBe(200);
});

test("/metrics counts volumes by state, and requests for content by the class of their status", async () => {
  await ask("GET", "path", { path: "/" });
  await ask("GET", "path", { path: "/none" });
  const headers = { "x-admin-token": ADMIN_TOKEN };
  const { text } = await cluster.ask("GET", "/metrics", { key: null, headers });
  expect(text).toMatch(/^svc_volumes\{state="ready"\} [1-9]/m);
  expect(text).toMatch(/^svc_volume_size_bytes\{state="ready"\} [1-9]/m);
  for (const of of ["2xx", "4xx"])
    expect(text).toMatch(new RegExp(`^svc_volume_content_requests_total\\{class="${of}"\\} [1-9]`, "m"));
});

test("a node that is short of disk refuses what would write, with its reason", async () => {
  cluster.agent.volumes.refusal = new AppError("no_space", "the node's disk is short");
  expect((await put("/more", "x")).body).toMatchObject({ code: "507", message: "the node's disk is short" });
  expect((await ask("GET", "dir", { path: "/" })).status).toBe(200);
  cluster.agent.volumes.refusal = undefined;
});

test("no path and no link leads out of a volume, and nothing in it holds a request", async () => {
  const outside = join(files, "..", "..", "outside");
  await mkdir(outside, { recursive: true });
  await writeFile(join(outside, "secret"), "secret");
  const links: [string, string][] = [
    ["absolute", "/etc"],
    ["upwards", "../../outside"],
    ["twice", "upwards/secret"],
    ["loop", "loop"],
    ["magic", "/proc/self/root"],
    ["inner", "inside/there"],
  ];
  for (const [name, target] of links) await symlink(target, join(files, name));
  await mkdir(join(files, "inside", "there"), { recursive: true });
  await writeFile(join(files, "inside", "there", "own"), "own");
  await runCommand("mkfifo", [join(files, "pipe")]);

  const refused = [400, 404, 409];
  for (const path of [
    "absolute/passwd",
    "upwards/secret",
    "twice",
    "loop",
    "loop/x",
    "magic/etc/passwd",
    "../outside/secret",
    "pipe",
  ]) {
    expect([path, refused.includes((await ask("GET", "file", { path })).status)]).toEqual([path, true]);
  }
  for (const path of ["absolute/new", "upwards/secret", "upwards/new", "magic/tmp/new", "a/../../../outside/new"]) {
    const answers = [
      await put(path, "x", { force: "true" }),
      await ask("POST", "dir", { path: `${path}/d`, force: "true" }),
      await ask("DELETE", "path", { path }),
      await ask("PATCH", "path", { path }, { body: '{"mode":511}' }),
      await ask("GET", "dir", { path: path.replace(/\/[^/]*$/, "") }),
    ];
    expect([path, answers.every(({ status }) => refused.includes(status))]).toEqual([path, true]);
  }
  expect([await readdir(outside), await readFile(join(outside, "secret"), "utf8")]).toEqual([["secret"], "secret"]);
  expect(await volume.readFile("/inner/own")).toBe("own");
  expect(await volume.getInfo("/absolute")).toMatchObject({ type: "symlink", target: "/etc" });
  // A link is replaced and removed itself, never what it names.
  expect((await put("/upwards", "plain", { force: "true" })).status).toBe(201);
  expect((await lstat(join(files, "upwards"))).isFile()).toBe(true);
  await volume.remove("/absolute");
  expect(existsSync("/etc/passwd")).toBe(true);
  await ask("DELETE", "path", { path: "pipe" });
});

test("names with line breaks and without UTF-8 are listed, and a tree deeper than any path is removed", async () => {
  await mkdir(join(files, "odd"));
  await writeFile(join(files, "odd", 'a\n"b'), "");
  await writeFile(Buffer.concat([Buffer.from(join(files, "odd", "x")), Buffer.from([0xff, 0xc0, 0x80])]), "");
  expect((await volume.list("/odd")).map(({ name }) => name).sort()).toEqual(['a\n"b', "x\ufffd\ufffd\ufffd"]);
  const script =
    "import os,sys\nos.chdir(sys.argv[1])\nfor i in range(1000):\n  os.mkdir('directory'); open('f','w').close(); os.chdir('directory')";
  await mkdir(join(files, "odd", "deep"));
  await runCommand("python3", ["-c", script, join(files, "odd", "deep")], { timeoutMs: 60_000 });
  expect((await volume.list("/odd/deep", { depth: 64 })).length).toBe(128);
  await volume.remove("/odd");
  expect([existsSync(join(files, "odd")), await readdir(join(files, "..", "tmp"))]).toEqual([false, []]);
});
