/** The port with TLS for clients on other machines: requests and answers of forms that HTTP/1.1 has and HTTP/2 in Node has not. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createLog } from "../../../shared/program/log.ts";
import { type Front, openFront } from "../../../shared/proxy/front/front.ts";
import { openSite, type Site } from "../../../shared/tls/site/files.ts";
import { ask } from "../../support/peers/raw-client.ts";
import { type TestSite, testSite } from "../../support/tls/site.ts";

const DOMAIN = "sbx.example";
const log = createLog({ component: "test", level: "silent" });
const behind = createServer();

let files: TestSite;
let site: Site;
let front: Front;

beforeAll(async () => {
  files = await testSite(DOMAIN);
  site = await openSite({ ...files, domain: DOMAIN, now: Date.now, log, lookEveryMs: 1_000 });
  front = await openFront({
    host: "127.0.0.1",
    port: 0,
    shown: site,
    admits: () => true,
    serve: (_name, socket) => void behind.emit("connection", socket),
  });
});
afterAll(async () => {
  front.destroy();
  await front.close();
  await site.stop();
  files.remove();
});

function serving(handler: (request: IncomingMessage, response: ServerResponse) => void): void {
  behind.on("request", handler);
  onTestFinished(() => void behind.off("request", handler));
}

async function session(): Promise<ClientHttp2Session> {
  const opened = connect(`https://127.0.0.1:${front.port}`, {
    ca: files.authority.certificate,
    servername: `3000-iabc.${DOMAIN}`,
  });
  onTestFinished(() => opened.destroy());
  await once(opened, "connect");
  return opened;
}

/** Sends a request, and reads the whole answer. */
async function get(by: ClientHttp2Session, headers: Record<string, string | string[]> = {}) {
  const stream = by.request({ ":authority": `3000-iabc.${DOMAIN}`, ...headers });
  const [fields] = (await once(stream, "response")) as [Record<string, unknown>];
  let body = "";
  for await (const chunk of stream as AsyncIterable<Buffer>) body += chunk.toString();
  return { fields, body };
}

test("five hundred cookies, which browsers send one by one, arrive in one header", async () => {
  serving(({ headers }, response) => response.end(headers.cookie));
  const cookies = Array.from({ length: 500 }, (_, at) => `name${at}=value${at}`);
  const { body } = await get(await session(), { cookie: cookies });
  expect(body).toBe(cookies.join("; "));
});

test("a request with five hundred headers arrives with all of them", async () => {
  serving(({ headers }, response) =>
    response.end(String(Object.keys(headers).filter((name) => name.startsWith("x-many-")).length)),
  );
  const headers = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`x-many-${at}`, "1"]));
  expect((await get(await session(), headers)).body).toBe("500");
});

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

test("headers of a megabyte, by a client that has not confirmed the limit and names one of 4 KB again and again, are 431", async () => {
  const client = connectTls({
    host: "127.0.0.1",
    port: front.port,
    ca: files.authority.certificate,
    servername: DOMAIN,
    ALPNProtocols: ["h2"],
  });
  onTestFinished(() => void client.destroy());
  client.on("error", () => undefined);
  await once(client, "secureConnect");
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  const block = Buffer.concat([
    // GET, https, /, and the authority.
    Buffer.from([0x82, 0x87, 0x84, 0x01]),
    text(DOMAIN),
    // A header that both ends remember: the length 4000 in three bytes, as RFC 7541 §5.1 writes it.
    Buffer.from([0x40]),
    text("x-a"),
    Buffer.from([0x7f, 0xa1, 0x1e]),
    Buffer.alloc(4_000, "v"),
    // The same, 255 times more.
    Buffer.alloc(255, 0xbe),
  ]);
  client.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  client.write(Buffer.concat([frame(4, 0, 0, Buffer.alloc(0)), frame(1, 5, 1, block)]));
  let said = "";
  for await (const chunk of client as AsyncIterable<Buffer>) {
    said += chunk.toString("latin1");
    if (said.includes("too large")) break;
  }
  expect(said).toContain("Request headers are too large");
});

test.each([
  ["Content-Encoding", "gzip", "br", "gzip, br"],
  ["Content-Language", "de", "fr", "de, fr"],
  ["User-Agent", "one", "two", "one"],
  ["Referer", "one", "two", "one"],
])("an answer with two lines of %s arrives", async (name, one, two, seen) => {
  serving((_asked, response) => {
    response.writeHead(200, [name, one, name, two]);
    response.end("whole");
  });
  const { fields, body } = await get(await session());
  expect([fields[":status"], fields[name.toLowerCase()], body]).toEqual([200, seen, "whole"]);
});

test("an answer with a status above those of HTTP/2 is refused with its number", async () => {
  serving((_asked, response) => response.writeHead(999).end());
  const { fields, body } = await get(await session());
  expect(fields[":status"]).toBe(502);
  expect(JSON.parse(body)).toEqual({
    code: 502,
    message: "the server's answer has the status 999 that HTTP/2 cannot carry",
  });
});

test.each(["User-Agent", "Referer", "From", "Authorization"])(
  "trailers with two lines of %s end nothing but their answer",
  async (name) => {
    serving((_asked, response) => {
      response.writeHead(200, { trailer: name });
      response.write("whole");
      response.addTrailers([
        [name, "one"],
        [name, "two"],
      ]);
      response.end();
    });
    const by = await session();
    expect((await get(by)).body).toBe("whole");
    expect((await get(by)).body).toBe("whole");
  },
);

test.each([
  ["GET", {}, undefined, []],
  ["a body with a length", { ":method": "POST", "content-length": "2" }, "hi", []],
  ["a body without", { ":method": "POST" }, "hi", ["x-one", "1", "x-two", "2, 3"]],
])(
  "a request that announces trailers is served, and they follow chunks only: %s",
  async (_what, head, body, arrived) => {
    serving((request, response) => {
      request.resume().once("end", () => response.end(JSON.stringify(request.rawTrailers)));
    });
    const stream = (await session()).request(
      { ":authority": `3000-iabc.${DOMAIN}`, trailer: "x-one, x-two", ...head },
      body === undefined ? { endStream: true } : { waitForTrailers: true },
    );
    stream.once("wantTrailers", () => stream.sendTrailers({ "x-one": "1", "x-two": ["2", "3"] }));
    if (body !== undefined) stream.end(body);
    let said = "";
    for await (const chunk of stream as AsyncIterable<Buffer>) said += chunk.toString();
    expect(JSON.parse(said)).toEqual(arrived);
  },
);

test.each([
  ["GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["POST", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"],
  ["CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"],
])("%s without TLS is answered with what to write", async (_method, request) => {
  const answer = await ask(front.port, request);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(answer.split("\r\n\r\n")[1]).toBe("This port speaks HTTPS: begin the address with https://\n");
});
