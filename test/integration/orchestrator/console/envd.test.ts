/** The console's way to the processes and files of a sandbox: what envd gets of a request, and what the page gets of its answer. */

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ENVD_PORT } from "../../../../shared/proxy/hop-contract.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { listening } from "../../../support/peers/listening.ts";
import { type Browser, newBrowser } from "./browser.ts";

/** An address of this machine, of this file alone: envd's port is the same everywhere. */
const ADDRESS = `127.${1 + (process.pid % 250)}.77.1`;

let cluster: Cluster;
let browser: Browser;
let id: string;
let stopEnvd: () => Promise<unknown>;
let seen: { request: IncomingMessage; body: string }[] = [];
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  const envd = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      seen.push({ request, body: Buffer.concat(chunks).toString() });
      answer(response);
    });
  });
  await listening(envd, ADDRESS, ENVD_PORT);
  stopEnvd = () => new Promise((resolve) => envd.close(resolve).closeAllConnections());
  cluster = await startCluster({ agent: { address: ADDRESS } });
  browser = newBrowser(cluster);
  await browser.logIn(cluster.key);
  const made = await browser.ask("POST", "/console/api/v2/sandboxes", { body: { templateID: "base" } });
  id = (made.body as { sandboxID: string }).sandboxID;
});
afterAll(async () => {
  await cluster.stop();
  await stopEnvd();
});
beforeEach(() => {
  seen = [];
});

const at = (path: string, of: string = id) => `/console/api/sandboxes/${of}/envd/${path}`;

test("envd gets the call with the sandbox's token, and neither the cookie nor the page's headers", async () => {
  answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end('{"processes":[]}');
  const listed = await browser.ask("POST", at("process.Process/List"), { body: {} });
  expect([listed.status, listed.body]).toEqual([200, { processes: [] }]);
  const [{ request, body } = { request: undefined, body: "" }] = seen;
  expect([request?.url, body]).toEqual(["/process.Process/List", "{}"]);
  const read = (await cluster.ask("GET", `/sandboxes/${id}`)).body as { envdAccessToken: string };
  expect(request?.headers).toMatchObject({
    "x-access-token": read.envdAccessToken,
    "content-type": "application/json",
  });
  for (const name of ["cookie", "origin", "sec-fetch-site", "x-api-key"])
    expect(request?.headers).not.toHaveProperty(name);
});

test("envd is asked to break its silence more often than proxies cut silent connections, whatever the page asks for", async () => {
  answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end("{}");
  for (const headers of [{}, { "keepalive-ping-interval": "86400" }])
    await browser.ask("POST", at("process.Process/List"), { body: {}, headers });
  for (const { request } of seen) expect(request.headers["keepalive-ping-interval"]).toBe("20");
  expect(seen).toHaveLength(2);
});

test("the version of a file goes both ways, so that nobody overwrites what somebody else has changed", async () => {
  answer = (response) => response.writeHead(200, { etag: '"1-a"' }).end("text");
  expect((await browser.ask("GET", at("files?path=%2Ftmp%2Fa"))).headers.get("etag")).toBe('"1-a"');
  answer = (response) =>
    response.writeHead(412, { "content-type": "application/json" }).end('{"code":412,"message":"not as it was"}');
  const headers = { "if-match": '"1-a"' };
  const refused = await browser.ask("POST", at("files?path=%2Ftmp%2Fa"), { body: {}, headers });
  expect([refused.status, refused.body]).toEqual([412, { code: 412, message: "not as it was" }]);
  expect(seen[1]?.request.headers).toMatchObject(headers);
});

test.each([
  ["a page", ["text/html"]],
  ["data", ["application/json"]],
  ["data and a page, of which browsers take the last", ["application/json, text/html"]],
  ["data and a script, in two headers", ["application/json", "text/javascript"]],
])("a file that the sandbox calls %s is answered as an attachment without a type", async (_name, types) => {
  const headers = types.flatMap((type) => ["content-type", type]);
  answer = (response) =>
    response
      .writeHead(200, [...headers, "content-disposition", "inline", "set-cookie", "tossed=1"])
      .end("<script>alert(1)</script>");
  const file = await browser.ask("GET", at("files?path=%2Ftmp%2Fa%20b.html"));
  expect([file.status, file.text]).toEqual([200, "<script>alert(1)</script>"]);
  expect(seen[0]?.request.url).toBe("/files?path=%2Ftmp%2Fa+b.html");
  expect([file.headers.get("content-type"), file.headers.get("content-disposition")]).toEqual([
    "application/octet-stream",
    "attachment",
  ]);
  expect(file.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(file.headers.getSetCookie()).toEqual([]);
});

test("a sandbox that refuses the platform's token does not log the page out", async () => {
  answer = (response) =>
    response.writeHead(401, { "content-type": "application/json" }).end('{"message":"log in at …"}');
  const refused = await browser.ask("POST", at("process.Process/List"), { body: {} });
  expect([refused.status, refused.body]).toEqual([
    503,
    {
      code: 503,
      error_code: "node_unreachable",
      message: `the envd of sandbox '${id}' has refused the platform's token`,
    },
  ]);
});

test("an upload reaches envd as it is", async () => {
  answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end("[]");
  const headers = { "content-type": "application/octet-stream" };
  const stored = await browser.ask("POST", at("files?path=%2Ftmp%2Fa"), { headers, body: { as: "it is" } });
  expect(stored.status, stored.text).toBe(200);
  expect([seen[0]?.request.headers["content-type"], seen[0]?.body]).toEqual([
    "application/octet-stream",
    '{"as":"it is"}',
  ]);
});

test("a stream is passed on as it comes, and envd notices when the page leaves", async () => {
  let closed = false;
  answer = (response) => {
    response.writeHead(200, { "content-type": "application/connect+json" }).write("first");
    response.once("close", () => {
      closed = true;
    });
  };
  const left = new AbortController();
  const stream = await fetch(`${cluster.url}${at("process.Process/Connect")}`, {
    method: "POST",
    headers: { origin: cluster.url, cookie: browser.cookie ?? "", "content-type": "application/connect+json" },
    body: "{}",
    signal: left.signal,
  });
  expect(stream.headers.get("x-accel-buffering")).toBe("no");
  const first = await stream.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value as Uint8Array)).toBe("first");
  left.abort();
  await expect.poll(() => closed).toBe(true);
});

test("a stream ends when its sandbox is paused, though the sandbox itself says nothing", async () => {
  answer = (response) => response.writeHead(200, { "content-type": "application/connect+json" }).write("first");
  const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
  const { sandboxID } = made.body as { sandboxID: string };
  const stream = await fetch(`${cluster.url}${at("process.Process/Connect", sandboxID)}`, {
    method: "POST",
    headers: { origin: cluster.url, cookie: browser.cookie ?? "" },
    body: "{}",
  });
  expect(stream.status).toBe(200);
  const end = stream.text().then(
    () => "ended",
    () => "ended",
  );
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
  expect(await end).toBe("ended");
});

test("a terminal and live events end with their session", async () => {
  answer = (response) => response.writeHead(200, { "content-type": "application/connect+json" }).write("first");
  const made = await cluster.ask("POST", "/api-keys", { body: { name: "of a terminal" } });
  const { id: keyId, key } = made.body as { id: string; key: string };
  const other = newBrowser(cluster);
  await other.logIn(key);
  const headers = { origin: cluster.url, cookie: other.cookie ?? "", accept: "text/event-stream" };
  const streams = [
    await fetch(`${cluster.url}${at("process.Process/Connect")}`, { method: "POST", headers, body: "{}" }),
    await fetch(`${cluster.url}/console/api/events`, { headers }),
  ];
  const ends = streams.map((stream) =>
    stream.text().then(
      () => "ended",
      () => "ended",
    ),
  );
  await cluster.ask("DELETE", `/api-keys/${keyId}`);
  expect(await Promise.all(ends)).toEqual(["ended", "ended"]);
});

test("a terminal at which nobody types does not keep its session", async () => {
  answer = (response) => response.writeHead(200, { "content-type": "application/connect+json" }).write("first");
  const other = newBrowser(cluster);
  await other.logIn(cluster.key);
  const headers = { origin: cluster.url, cookie: other.cookie ?? "" };
  const stream = await fetch(`${cluster.url}${at("process.Process/Connect")}`, { method: "POST", headers, body: "{}" });
  const hash = createHash("sha256")
    .update(other.cookie?.split("=")[1] ?? "")
    .digest("base64");
  const leftMs = 3_000;
  const back = 12 * 3_600_000 - leftMs;
  await cluster.database.query(`update console_sessions set used_at = used_at - ${back} where hash = ?`, hash);
  const end = stream.text().then(
    () => "ended",
    () => "ended",
  );
  expect(await end).toBe("ended");
  expect((await other.ask("GET", "/console/api/templates")).status).toBe(401);
});

test("only the calls of the page reach envd, and only in the session's own sandboxes that run", async () => {
  for (const path of ["init", "process.Process/StreamInput", "logs", "files/compose"])
    expect((await browser.ask("POST", at(path), { body: {} })).status, path).toBe(404);
  expect((await browser.ask("GET", at("files?path=relative"))).status).toBe(400);
  const other = newBrowser(cluster);
  await other.logIn((await cluster.addProject("another")).key);
  const foreign = await other.ask("POST", at("process.Process/List"), { body: {} });
  expect([foreign.status, foreign.body]).toEqual([404, expect.objectContaining({ error_code: "sandbox_not_found" })]);
  const paused = (await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).body as {
    sandboxID: string;
  };
  await cluster.ask("POST", `/sandboxes/${paused.sandboxID}/pause`);
  const refused = await browser.ask("POST", at("process.Process/List", paused.sandboxID), { body: {} });
  expect([refused.status, refused.body]).toEqual([409, expect.objectContaining({ error_code: "conflict" })]);
  await cluster.ask("DELETE", `/sandboxes/${paused.sandboxID}`);
  const ended = await browser.ask("POST", at("process.Process/List", paused.sandboxID), { body: {} });
  expect([ended.status, ended.body]).toEqual([404, expect.objectContaining({ error_code: "sandbox_ended" })]);
  expect(seen).toEqual([]);
});
