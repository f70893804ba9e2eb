/** What our API servers answer to bodies and paths that programs write without care: each refusal says what was wrong. */

import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { Type } from "typebox";
import { afterEach, expect, test } from "vitest";
import type { Contract } from "../../../shared/http/contract.ts";
import { KnownPaths } from "../../../shared/http/requests/meant-path.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";

const contract = {
  put: {
    method: "POST",
    path: "/things",
    summary: "Takes a thing",
    tag: "Test",
    access: "project",
    status: 200,
    maxBodyBytes: 1_000,
    body: Type.Object({ name: Type.Optional(Type.String()) }),
    optionalBody: true,
    reply: Type.Object({ name: Type.String() }),
  },
} as const satisfies Contract;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const JSON_TYPE = { "content-type": "application/json" };

async function send(body: string | Buffer, headers: Readonly<Record<string, string>> = JSON_TYPE, path = "/things") {
  const server = createServer(createLog({ component: "test", level: "silent" }));
  closers.push(() => server.close());
  serve(server, contract, { put: ({ body }) => ({ name: body.name ?? "none" }) }, () => undefined);
  const answer = await server.inject({ method: "POST", url: path, headers, payload: body });
  return { status: answer.statusCode, ...answer.json<{ name?: string; message?: string }>() };
}

test.each([
  ["a byte order mark before it", `\uFEFF{"name":"é"}`, "é"],
  ["line breaks around it", `\r\n{"name":"a"}\r\n`, "a"],
  ["nothing but a line break", "\r\n", "none"],
  ["nothing but a byte order mark", "\uFEFF", "none"],
])("JSON with %s is read", async (_what, body, name) => {
  expect(await send(body)).toEqual({ status: 200, name });
});

test.each([
  ["Latin-1", Buffer.from(`{"name":"é"}`, "latin1"), 400, /not UTF-8: other bytes would be stored as another text/],
  ["UTF-16, as PowerShell writes files", Buffer.from(`\uFEFF{"name":"a"}`, "utf16le"), 400, /not UTF-8: it is UTF-16/],
  ["JSON that breaks off", `{"name":"secret"`, 400, /^body is not valid JSON: Expected .* position 16/],
  ["the quotes of another shell", `'{name:secret}'`, 400, /Unexpected token '''; .*send it from a file$/],
  ["a word", "secret", 400, /^body is not valid JSON: Unexpected token 's'$/],
  ["more bytes than the route takes", `{"name":"${"a".repeat(1_000)}"}`, 413, /larger than 1000 bytes/],
])("the refusal of %s says what is wrong, and repeats nothing of it", async (_what, body, status, message) => {
  const answer = await send(body);
  expect(answer).toMatchObject({ status, message: expect.stringMatching(message) as string });
  expect(answer.message).not.toContain("secret");
});

test.each([
  ["curl's type of forms", { "content-type": "application/x-www-form-urlencoded" }, 400, /'application\/x-www-form-/],
  ["a type that is none", { "content-type": "json" }, 415, /must be application\/json, not 'json'/],
  ["no type", {}, 400, /must be application\/json, and the request names none/],
])("the refusal of %s names it", async (_what, headers, status, message) => {
  const answer = await send(Buffer.from("{}"), headers);
  expect(answer).toMatchObject({ status, message: expect.stringMatching(message) as string });
});

test.each([gzipSync, deflateSync, brotliCompressSync])(
  "the refusal of a compressed body names its encoding",
  async (compress) => {
    const answer = await send(compress(`{"name":"a"}`), { ...JSON_TYPE, "content-encoding": "gzip" });
    expect(answer).toMatchObject({
      status: 415,
      message: "Content-Encoding gzip is not taken: send the body as it is",
    });
  },
);

test.each(["", "utf-8", "identity", "gzip"])(
  "a body that is not compressed is read with Content-Encoding %j",
  async (encoding) => {
    expect(await send(`{"name":"a"}`, { ...JSON_TYPE, "content-encoding": encoding })).toEqual({
      status: 200,
      name: "a",
    });
  },
);

test.each(["application/json; charset=utf-8", "Application/JSON", "application/json;"])(
  "the type %s is JSON",
  async (type) => {
    expect(await send(`{"name":"a"}`, { "content-type": type })).toEqual({ status: 200, name: "a" });
  },
);

test.each([
  ["//things", "did you mean /things?"],
  ["/things/", "did you mean /things?"],
  ["//things//", "did you mean /things?"],
])("a path with a slash too many is answered with the one that was meant: %s", async (path, advice) => {
  const answer = await send("{}", JSON_TYPE, path);
  expect(answer.status).toBe(404);
  expect(answer.message).toContain(advice);
});

test.each(["/v1/things", "/api/things", "/api/v1/things", "/v3/things"])(
  "a path of another version, or of another base, is answered with the one that is there: %s",
  async (path) => {
    expect(await send("{}", JSON_TYPE, path)).toMatchObject({
      status: 404,
      message: `no route POST ${path}: did you mean /things?`,
    });
  },
);

test("a path is answered with its later version, whatever the ids in it", () => {
  const paths = new KnownPaths();
  paths.add("GET", "/v2/things/:id/logs");
  paths.add("POST", "/v2/things");
  expect(paths.like("GET", "/things/a/logs")).toBe("/v2/things/a/logs");
  expect(paths.like("GET", "/v1/things/a/logs")).toBe("/v2/things/a/logs");
  expect([paths.like("GET", "/things"), paths.like("GET", "/things//logs"), paths.like("GET", "/")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test.each(["/nothing", "/v1/nothing", "/v1", "/api", "/v10000/things"])(
  "a path that is like no route's is given no advice: %s",
  async (path) => {
    expect((await send("{}", JSON_TYPE, path)).message).toBe(`no route POST ${path}`);
  },
);
