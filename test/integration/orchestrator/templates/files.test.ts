/** Files of COPY steps: signed uploads that succeed whole or not at all, and nodes that fetch them. */

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, utimes } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import { buildingOn, messageOf, type Requested } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, NODE_KEY, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeBuild } from "../../../support/fakes/fake-agent-builds.ts";
import { tarOf } from "../../../support/images/tar.ts";

let cluster: Cluster;
let app: Requested;
beforeAll(async () => {
  cluster = await startCluster({ config: { buildPollMs: 20, maxUploadMb: 1 } });
  app = await building.request({ name: "app" });
});
afterAll(() => cluster.stop());

const building = buildingOn(() => cluster);
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

interface Place {
  readonly present: boolean;
  readonly url: string;
}

async function place(hash: string, templateID = app.templateID): Promise<Place> {
  const answer = await cluster.ask("GET", `/templates/${templateID}/files/${hash}`);
  expect(answer.status, answer.text).toBe(201);
  return answer.body as Place;
}

async function put(url: string, bytes: Buffer): Promise<{ status: number; message: string }> {
  const response = await fetch(url, { method: "PUT", body: new Uint8Array(bytes) });
  const text = await response.text();
  return { status: response.status, message: text === "" ? "" : (JSON.parse(text) as { message: string }).message };
}

async function upload(hash: string, bytes: Buffer): Promise<void> {
  expect(await put((await place(hash)).url, bytes)).toEqual({ status: 200, message: "" });
}

/** Downloads as a node does. */
async function download(hash: string, token = nodeToken(NODE_KEY, "n1", "from node")): Promise<Response> {
  return fetch(`${cluster.url}/internal/templates/${app.templateID}/files/${hash}`, {
    headers: { authorization: `Bearer ${token}` },
  });
}

const folder = () => join(cluster.filesFolder, app.templateID);
const stored = (hash: string) => readFile(join(folder(), hash));

describe("an upload", () => {
  test("needs only its URL, exists afterwards, and reaches the node that builds from it unchanged", async () => {
    const hash = hashOf("first");
    const bytes = gzipSync(tarOf({ "folder/a.txt": randomBytes(50_000).toString("hex") }));
    const before = await place(hash);
    expect(before).toMatchObject({ present: false, url: expect.stringContaining(cluster.url) as string });
    expect(await put(before.url, bytes)).toEqual({ status: 200, message: "" });
    // The answer has a URL even when the files are there: a client may be told to upload them again.
    expect(await place(hash)).toMatchObject({ present: true, url: expect.any(String) as string });
    expect((await download(hash)).status).toBe(404);

    let under: FakeBuild | undefined;
    cluster.agent.onBuild = (build) => {
      under = build;
    };
    const steps = [{ type: "COPY", args: ["folder", "/app/", "", ""], filesHash: hash, forceUpload: true, gzip: true }];
    const build = await building.request({ name: "app" });
    await building.start(build, { steps });
    await expect.poll(() => under?.buildId).toBe(build.buildID);
    const response = await download(hash);
    expect([response.status, response.headers.get("content-length")]).toEqual([200, String(bytes.length)]);
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    expect((await download(hash, "no-such-node-token")).status).toBe(401);
    expect((await download(hash, nodeToken(NODE_KEY, "n1", "to node"))).status).toBe(401);
    // The build runs on n1, so n2 gets the same answer as for files that were never uploaded.
    const others = await download(hash, nodeToken(NODE_KEY, "n2", "from node"));
    const unknown = await download(hashOf("unknown"));
    expect([others.status, await others.text()]).toEqual([404, await unknown.text()]);
    under?.ready();
    await expect.poll(() => building.status(build)).toMatchObject({ status: "ready" });
    expect((await download(hash)).status).toBe(404);
    cluster.agent.onBuild = (_build, run) => run();
  });

  test("can be used by a build of its template, and by no other", async () => {
    const hash = hashOf("copied");
    const bytes = tarOf({ "a.txt": "hello" });
    await upload(hash, bytes);
    const steps = [{ type: "COPY", args: ["a.txt", "/app/", "", ""], filesHash: hash, forceUpload: true, gzip: false }];
    await building.start(app, { steps });
    await expect.poll(() => building.status(app)).toMatchObject({ status: "ready" });
    expect(cluster.agent.builds.get(app.buildID)?.files.get(hash)?.equals(bytes)).toBe(true);
    const other = await building.request({ name: "other" });
    expect(messageOf(await building.start(other, { steps }))).toContain("have not been uploaded");
    expect(await place(hash, other.templateID)).toMatchObject({ present: false });
  });

  test.each([
    ["text", Buffer.from("hello"), 400, "not a tar archive"],
    ["nothing", Buffer.alloc(0), 400, ""],
    ["more than is allowed", Buffer.alloc(1024 * 1024 + 1), 413, "at most"],
  ])("of %s is refused, and nothing is there", async (what, bytes, code, words) => {
    const hash = hashOf(`refused ${what}`);
    const answer = await put((await place(hash)).url, bytes);
    expect(answer.status, answer.message).toBe(code);
    expect(answer.message).toContain(words);
    expect(await place(hash)).toMatchObject({ present: false });
    expect((await readdir(folder())).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("with another URL than it was given is refused", async () => {
    const { url } = await place(hashOf("signed"));
    const bytes = tarOf({ a: "b" });
    const expired = url.replace(/expires=\d+/, "expires=1");
    const other = url.replace(hashOf("signed"), hashOf("else"));
    const bare = url.split("?", 1)[0] ?? "";
    for (const wrong of [expired, other, bare]) expect((await put(wrong, bytes)).status).toBe(403);
    expect((await put(url.replace("/uploads/", "/uploads/..%2f"), bytes)).status).toBe(400);
  });

  test("that does not say its length is refused", async () => {
    const { url } = await place(hashOf("chunked"));
    const request = httpRequest(url, { method: "PUT", headers: { "transfer-encoding": "chunked" } });
    request.end(tarOf({ a: "b" }));
    const [response] = (await once(request, "response")) as [{ statusCode: number; resume(): void }];
    response.resume();
    expect(response.statusCode).toBe(400);
  });

  test("that is cut short leaves what was there before", async () => {
    const hash = hashOf("cut");
    const bytes = tarOf({ a: "first" });
    await upload(hash, bytes);
    const { pathname, search, host, port } = new URL((await place(hash)).url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(`PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 100000\r\n\r\n`);
    socket.write(tarOf({ b: "second" }));
    await expect.poll(async () => (await readdir(folder())).filter((name) => name.startsWith(".")).length).toBe(1);
    expect((await stored(hash)).equals(bytes)).toBe(true);
    socket.destroy();
    await expect.poll(async () => (await readdir(folder())).filter((name) => name.startsWith(".")).length).toBe(0);
    expect((await stored(hash)).equals(bytes)).toBe(true);
  });

  test("of the same files by many clients at once is stored completely", async () => {
    const hash = hashOf("many");
    const { url } = await place(hash);
    const all = Array.from({ length: 8 }, (_, index) => tarOf({ a: String(index).repeat(40_000) }));
    expect(new Set((await Promise.all(all.map((bytes) => put(url, bytes)))).map(({ status }) => status))).toEqual(
      new Set([200]),
    );
    const got = await stored(hash);
    expect(all.some((bytes) => bytes.equals(got))).toBe(true);
  });

  test.each(["A".repeat(64), "a".repeat(63), "..%2f..%2fetc", "g".repeat(64)])(
    "with '%s' for a hash is refused",
    async (hash) => {
      expect((await cluster.ask("GET", `/templates/${app.templateID}/files/${hash}`)).status).toBe(400);
    },
  );
});

test("old archives that no build copies from are listed by a dry run and then removed", async () => {
  const [needed, unneeded] = [hashOf("copied"), hashOf("unneeded")];
  await upload(unneeded, tarOf({ a: "b" }));
  for (const hash of [needed, unneeded]) await utimes(join(folder(), hash), 1, 1);
  const collect = async (body: object) => (await cluster.ask("POST", "/admin/builds/collect", { ...admin, body })).body;
  expect(await collect({})).toMatchObject({ dryRun: true, files: { count: 1 } });
  expect((await readdir(folder())).includes(unneeded)).toBe(true);
  expect(await collect({ dryRun: false })).toMatchObject({ dryRun: false, files: { count: 1 } });
  expect((await readdir(folder())).includes(unneeded)).toBe(false);
  expect((await readdir(folder())).includes(needed)).toBe(true);
  await cluster.ask("DELETE", `/templates/${app.templateID}`);
  await expect(readdir(folder())).rejects.toThrow("ENOENT");
});

describe("an image from an upload", () => {
  test("is unpacked by the node, and kept as long as its build", async () => {
    const hash = hashOf("image");
    const ask = async (body: object) => {
      const requested = await building.request({ name: "image" });
      return { requested, answer: await building.start(requested, body) };
    };
    const missing = await ask({ fromImage: `oci-archive:${hash}` });
    expect([missing.answer.status, messageOf(missing.answer)]).toEqual([
      400,
      `body field 'fromImage': the image ${hash} has not been uploaded`,
    ]);
    const short = await ask({ fromImage: "oci-archive:abc" });
    expect([short.answer.status, messageOf(short.answer)]).toEqual([400, expect.stringContaining("64 hexadecimal")]);
    const { templateID } = missing.requested;
    await put((await place(hash, templateID)).url, tarOf({ "index.json": "{}" }));
    const fromImageRegistry = { type: "registry", username: "a", password: "b" };
    expect((await ask({ fromImage: `oci-archive:${hash}`, fromImageRegistry })).answer.status).toBe(400);
    const { answer } = await ask({ fromImage: `oci-archive:${hash}:latest` });
    expect(answer.status, answer.text).toBe(202);
    const from = () => cluster.agent.buildsAsked.at(-1)?.from;
    await expect.poll(from).toEqual({ is: "archive", filesHash: hash, ref: "latest" });
    const long = new Date(Date.now() - 1e10);
    const home = join(cluster.filesFolder, templateID);
    await utimes(join(home, hash), long, long);
    await cluster.ask("POST", "/admin/builds/collect", { ...admin, body: { dryRun: false } });
    expect(await readdir(home)).toContain(hash);
  });
});
