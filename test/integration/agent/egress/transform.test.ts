/** Programs of a sandbox reach a host with a rule, over real TLS on both sides. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttps, request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { listening } from "../../../support/peers/listening.ts";
import {
  exchangeRaw,
  leafOf,
  listenTransformed,
  nodeAuthority,
  startOrigin,
} from "../../../support/peers/transformed.ts";

const run = promisify(execFile);
const HOST = "api.example.test";
const RULE = { Authorization: "Bearer ${e2b.secrets.KEY}", "X-Team": "blue" };
const SECRETS = { "e2b.secrets.KEY": "s3cret" };

let directory: string;
let ca: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "transform-"));
  ca = join(directory, "ca.pem");
  writeFileSync(ca, nodeAuthority.certificate);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** An origin that answers with the request it received. */
const telling = () =>
  startOrigin(HOST, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url, rawHeaders, rawTrailers } = request;
      const body = Buffer.concat(chunks).toString();
      response.end(JSON.stringify({ method, url, rawHeaders, rawTrailers, body }));
    });
  });

interface Told {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: string[];
  readonly rawTrailers: string[];
  readonly body: string;
}

const headersOf = ({ rawHeaders }: Told, name: string) =>
  rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);

describe("the programs that sandboxes have", () => {
  test("curl with HTTP/2 falls back to HTTP/1.1, and its own header is replaced", async () => {
    const { port } = await listenTransformed({
      hostname: HOST,
      tls: true,
      to: (await telling()).port,
      headers: RULE,
      secrets: SECRETS,
    });
    const { stdout } = await run("curl", [
      "-sS",
      "--http2",
      "--cacert",
      ca,
      "--resolve",
      `${HOST}:${port}:127.0.0.1`,
      "-H",
      "authorization: Bearer mine",
      "-w",
      "\n%{http_version}",
      `https://${HOST}:${port}/v1?q=1`,
    ]);
    const [body = "", version] = stdout.split("\n");
    const told = JSON.parse(body) as Told;
    expect(version).toBe("1.1");
    expect(told.url).toBe("/v1?q=1");
    expect(headersOf(told, "authorization")).toEqual(["Bearer s3cret"]);
    expect(headersOf(told, "x-team")).toEqual(["blue"]);
    expect(headersOf(told, "host")).toEqual([`${HOST}:${port}`]);
  });

  test("python's urllib and requests-like verification accept the certificate", async () => {
    const { port } = await listenTransformed({
      hostname: HOST,
      tls: true,
      to: (await telling()).port,
      headers: RULE,
      secrets: SECRETS,
    });
    const script = `
import socket, ssl, urllib.request, json
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: real("127.0.0.1", *rest, **more)
context = ssl.create_default_context(cafile=${JSON.stringify(ca)})
context.verify_flags |= ssl.VERIFY_X509_STRICT
request = urllib.request.Request("https://${HOST}:${port}/py", data=b"hello")
print(urllib.request.urlopen(request, context=context).read().decode())`;
    const { stdout } = await run("python3", ["-c", script]);
    const told = JSON.parse(stdout) as Told;
    expect([told.method, told.url, told.body]).toEqual(["POST", "/py", "hello"]);
    expect(headersOf(told, "authorization")).toEqual(["Bearer s3cret"]);
  });

  test("Node's fetch with NODE_EXTRA_CA_CERTS keeps its connection", async () => {
    const origin = await telling();
    const listening = await listenTransformed({
      hostname: HOST,
      tls: true,
      to: origin.port,
      headers: RULE,
      secrets: SECRETS,
    });
    const script = `
const dns = require("node:dns");
dns.lookup = (host, options, done) => options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
(async () => {
  const seen = [];
  for (let i = 0; i < 5; i++) {
    const answer = await fetch("https://${HOST}:${listening.port}/" + i, { method: "POST", body: "b" + i });
    seen.push((await answer.json()).body);
  }
  console.log(seen.join());
})();`;
    const { stdout } = await run(process.execPath, ["-e", script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: ca },
    });
    expect(stdout.trim()).toBe("b0,b1,b2,b3,b4");
    // Two connections: undici opens another one when the first answer has not quite ended.
    expect(listening.taken()).toBeLessThanOrEqual(2);
    // No connection is used again after a request with a body.
    expect([origin.connections(), listening.dials()]).toEqual([5, 5]);
    expect(listening.asked).toHaveLength(5);
  });

  test("git lists the references of a repository", async () => {
    const commit = "1234567890123456789012345678901234567890";
    const origin = await startOrigin(HOST, (request, response) => {
      if (request.url?.startsWith("/r.git/info/refs") !== true || request.headers.authorization !== "Bearer s3cret")
        response.statusCode = 404;
      response.end(
        request.url?.includes("info/refs") === true ? `${commit}\trefs/heads/main\n` : "ref: refs/heads/main\n",
      );
    });
    const { port } = await listenTransformed({
      hostname: HOST,
      tls: true,
      to: origin.port,
      headers: RULE,
      secrets: SECRETS,
    });
    const { stdout } = await run(
      "git",
      [
        "-c",
        `http.curloptResolve=${HOST}:${port}:127.0.0.1`,
        "ls-remote",
        `https://${HOST}:${port}/r.git`,
        "refs/heads/main",
      ],
      { env: { ...process.env, GIT_SSL_CAINFO: ca } },
    );
    expect(stdout).toContain(commit);
  });

  test("WebSocket messages pass in both directions, and the request carries the rule's headers", async () => {
    const { certificate, key } = await leafOf(HOST);
    const server = createHttps({ cert: certificate, key });
    const sockets = new WebSocketServer({ server });
    const seen: unknown[] = [];
    sockets.on("connection", (socket, request) => {
      seen.push(request.headers.authorization);
      socket.on("message", (data: Buffer) => socket.send(`echo ${data.toString()}`));
    });
    const to = await listening(server);
    onTestFinished(() => {
      for (const client of sockets.clients) client.terminate();
      server.close();
    });
    const here = await listenTransformed({ hostname: HOST, tls: true, to, headers: RULE, secrets: SECRETS });
    const tlsOptions = { servername: HOST };
    const client = new WebSocket(`wss://127.0.0.1:${here.port}/ws`, {
      ...tlsOptions,
      ca: nodeAuthority.certificate,
      headers: {
        Host: HOST,
        Authorization: "Bearer mine",
      },
    });
    const answers: string[] = [];
    client.on("open", () => client.send("a"));
    client.on("message", (data: Buffer) => {
      answers.push(data.toString());
      if (answers.length < 3) client.send("x".repeat(answers.length));
      else client.close(1000, "enough");
    });
    const code = await new Promise((resolve, reject) => {
      client.once("close", resolve);
      client.once("error", reject);
    });
    expect([code, answers, seen]).toEqual([1000, ["echo a", "echo x", "echo xx"], ["Bearer s3cret"]]);
    await expect.poll(() => here.ended.length).toBe(1);
    expect(here.ended[0]?.failed).toBeUndefined();
  });

  test("a refused WebSocket shows the destination's answer", async () => {
    const { port } = await listenTransformed({
      hostname: HOST,
      tls: true,
      to: (await telling()).port,
      headers: RULE,
      secrets: SECRETS,
    });
    const request = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n`;
    const answer = await exchangeRaw(port, HOST, request);
    expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(answer.toLowerCase()).toContain("connection: close");
    expect(answer).toContain('"upgrade","websocket"'.replace("upgrade", "Upgrade"));
  });
});

test("fifty requests at once get each their own answer and share one certificate", async () => {
  const origin = await telling();
  const { port, ended } = await listenTransformed({
    hostname: HOST,
    tls: true,
    to: origin.port,
    headers: RULE,
    secrets: SECRETS,
  });
  const one = (i: number) =>
    new Promise<Told>((resolve, reject) => {
      const body = `${i}`.repeat(20_000);
      const call = httpsRequest(
        {
          host: "127.0.0.1",
          port,
          servername: HOST,
          ca: nodeAuthority.certificate,
          method: "POST",
          path: `/${i}`,
          headers: { Host: HOST },
          agent: false,
        },
        (answer) => {
          let text = "";
          answer.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          answer.once("end", () => resolve(JSON.parse(text) as Told));
        },
      );
      call.once("error", reject);
      call.end(body);
    });
  const told = await Promise.all(Array.from({ length: 50 }, (_, i) => one(i)));
  expect(told.map(({ url }) => url)).toEqual(Array.from({ length: 50 }, (_, i) => `/${i}`));
  expect(told.every((one, i) => one.body === `${i}`.repeat(20_000))).toBe(true);
  expect(origin.connections()).toBe(50);
  await expect.poll(() => ended.length).toBe(50);
  expect(ended.filter(({ failed }) => failed !== undefined)).toEqual([]);
});
