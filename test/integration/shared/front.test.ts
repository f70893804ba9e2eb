/** The port with TLS for clients on other machines, in front of two ordinary servers, by the clients that people have. */

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { Agent as HttpsAgent, request } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type ClientOptions, WebSocket, WebSocketServer } from "ws";
import { createLog } from "../../../shared/program/log.ts";
import { type Front, openFront } from "../../../shared/proxy/front/front.ts";
import { openSite, type Site } from "../../../shared/tls/site/files.ts";
import { type TestSite, testSite } from "../../support/tls/site.ts";

const DOMAIN = "sbx.example";
const API = `api.${DOMAIN}`;
const SANDBOX = `3000-iabc.${DOMAIN}`;
const log = createLog({ component: "test", level: "silent" });

let files: TestSite;
let site: Site;
let front: Front;
const behind: Record<"api" | "edge", Server> = { api: createServer(), edge: createServer() };
const handlers: { next?: (request: IncomingMessage, response: ServerResponse) => void } = {};

beforeAll(async () => {
  files = await testSite(DOMAIN);
  site = await openSite({ ...files, domain: DOMAIN, now: Date.now, log, lookEveryMs: 20 });
  for (const [name, server] of Object.entries(behind)) {
    server.on("request", (asked: IncomingMessage, response: ServerResponse) => {
      if (handlers.next === undefined) response.end(`${name} ${asked.method} ${asked.headers.host} ${asked.url}`);
      else handlers.next(asked, response);
    });
  }
  front = await openFront({
    host: "127.0.0.1",
    port: 0,
    shown: site,
    admits: () => true,
    serve: (name, socket) => void behind[name === API ? "api" : "edge"].emit("connection", socket),
  });
});
afterAll(async () => {
  front.destroy();
  await front.close();
  await site.stop();
  files.remove();
});

function serving(handler: NonNullable<typeof handlers.next>): void {
  handlers.next = handler;
  onTestFinished(() => {
    delete handlers.next;
  });
}

async function session(servername = API): Promise<ClientHttp2Session> {
  const opened = connect(`https://127.0.0.1:${front.port}`, {
    ca: files.authority.certificate,
    servername,
    maxSessionMemory: 100,
  });
  onTestFinished(() => opened.destroy());
  await once(opened, "connect");
  return opened;
}

/** Sends a request in a session, and reads the whole answer. */
async function ask(by: ClientHttp2Session, headers: Record<string, string>, body?: Buffer) {
  const stream = by.request({ ":authority": API, ...headers }, { endStream: body === undefined });
  const head = once(stream, "response") as Promise<[Record<string, unknown>]>;
  if (body !== undefined) stream.end(body);
  const [fields] = await head;
  return { fields, body: await read(stream) };
}

async function read(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function get(servername: string, { agent }: { agent?: HttpsAgent } = {}): Promise<string> {
  const call = request({
    host: "127.0.0.1",
    port: front.port,
    path: "/x",
    servername,
    ca: files.authority.certificate,
    headers: { host: servername },
    ...(agent === undefined ? { agent: false } : { agent }),
  });
  call.end();
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  return (await read(answer)).toString();
}

test("a connection that cannot be accepted, as when no descriptor is free, does not end the program", async () => {
  const handles = (process as unknown as { _getActiveHandles(): readonly object[] })._getActiveHandles();
  const server = handles.find(
    (one) => one instanceof NetServer && (one.address() as AddressInfo | null)?.port === front.port,
  );
  (server as NetServer).emit("error", new Error("accept EMFILE"));
  expect(await get(API)).toBe(`api GET ${API} /x`);
});

test("a connection of HTTP/1.1 goes to the server that its name means", async () => {
  expect(await get(API)).toBe(`api GET ${API} /x`);
  expect(await get(SANDBOX)).toBe(`edge GET ${SANDBOX} /x`);
});

test("each stream of one HTTP/2 session goes to the server that its authority means", async () => {
  const by = await session();
  const answers = await Promise.all(
    [API, SANDBOX, API, SANDBOX].map((name) => ask(by, { ":authority": name, ":path": "/a%2Fb?c=%20" })),
  );
  expect(answers.map(({ body }) => body.toString())).toEqual([
    `api GET ${API} /a%2Fb?c=%20`,
    `edge GET ${SANDBOX} /a%2Fb?c=%20`,
    `api GET ${API} /a%2Fb?c=%20`,
    `edge GET ${SANDBOX} /a%2Fb?c=%20`,
  ]);
});

test("a stream is seen as a request by TLS from its client's address", async () => {
  serving(({ socket }, response) =>
    response.end(JSON.stringify([socket.remoteAddress, (socket as TLSSocket).encrypted, socket.remotePort])),
  );
  const by = await session();
  expect(JSON.parse((await ask(by, {})).body.toString())).toEqual(["127.0.0.1", true, by.socket.localPort]);
});

test.each(["POST", "DELETE"])("ten bodies of %s cross one session whole, both ways", async (method) => {
  serving((asked, response) => void asked.pipe(response));
  const by = await session();
  const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
  const bodies = Array.from({ length: 10 }, (_, at) => randomBytes(1 + at * 400_000));
  const answers = await Promise.all(bodies.map((body) => ask(by, { ":method": method }, body)));
  expect(answers.map(({ body }) => digest(body))).toEqual(bodies.map(digest));
});

test("an answer whose body has a transfer coding is refused with its name, and never sent as if it had none", async () => {
  serving((_asked, response) => {
    response.writeHead(200, { "transfer-encoding": "gzip, chunked" });
    response.end("zz");
  });
  const { fields, body } = await ask(await session(), {});
  expect(fields[":status"]).toBe(502);
  expect(JSON.parse(body.toString())).toEqual({
    code: 502,
    message: "the server's answer has the transfer coding gzip, which HTTP/2 cannot carry",
  });
});

test("status, headers with several values, trailers and informational answers cross", async () => {
  serving((_asked, response) => {
    response.writeEarlyHints({ link: "</a.css>; rel=preload" });
    response.writeHead(418, { "set-cookie": ["a=1", "b=2"], trailer: "x-sum", connection: "close" });
    response.write("tea");
    response.addTrailers({ "x-sum": "7" });
    response.end();
  });
  const by = await session();
  const stream = by.request({ ":authority": API });
  const [[hints], [fields]] = (await Promise.all([once(stream, "headers"), once(stream, "response")])) as [
    [Record<string, unknown>],
    [Record<string, unknown>],
  ];
  expect(hints).toMatchObject({ ":status": 103, link: "</a.css>; rel=preload" });
  expect(fields).toMatchObject({ ":status": 418, "set-cookie": ["a=1", "b=2"] });
  expect(fields).not.toHaveProperty("connection");
  const trailers = once(stream, "trailers");
  expect((await read(stream)).toString()).toBe("tea");
  expect((await trailers)[0]).toMatchObject({ "x-sum": "7" });
});

test.each([204, 304])("an answer with status %i has no body and ends", async (status) => {
  serving((_asked, response) => response.writeHead(status).end());
  const { fields, body } = await ask(await session(), {});
  expect([fields[":status"], body.length]).toEqual([status, 0]);
});

test("HEAD is answered without a body", async () => {
  serving((_asked, response) => response.writeHead(200, { "content-length": "5" }).end());
  const { fields, body } = await ask(await session(), { ":method": "HEAD" });
  expect([fields["content-length"], body.length]).toEqual(["5", 0]);
});

test("an answer that comes before the end of an upload reaches the client", async () => {
  serving((_asked, response) => {
    response.writeHead(413, { connection: "close" });
    response.end("too large");
    response.socket?.destroySoon();
  });
  const by = await session();
  const stream = by.request({ ":method": "POST", ":authority": API });
  stream.on("error", () => undefined);
  stream.write(randomBytes(2_000_000));
  const [fields] = (await once(stream, "response")) as [Record<string, unknown>];
  expect(fields[":status"]).toBe(413);
  expect((await read(stream)).toString()).toBe("too large");
  // The stream ends, although the client has not, and the session goes on.
  await once(stream, "close");
  delete handlers.next;
  expect((await ask(by, {})).body.toString()).toContain("api GET");
});

test("an answer that breaks off does not look complete", async () => {
  serving((_asked, response) => {
    response.write("half");
    setImmediate(() => response.socket?.destroy());
  });
  const stream = (await session()).request({ ":authority": API });
  await expect(read(stream)).rejects.toThrow(/INTERNAL_ERROR/);
});

test("a server that closes without an answer makes it 502", async () => {
  serving((asked) => asked.socket.destroy());
  expect((await ask(await session(), {})).fields[":status"]).toBe(502);
});

test("a server learns that a client has reset its stream", async () => {
  const seen: string[] = [];
  serving((_request, response) => {
    response.once("close", () => seen.push(response.writableFinished ? "finished" : "left"));
    response.write("beginning");
  });
  const stream = (await session()).request({ ":authority": API });
  await once(stream, "data");
  stream.close();
  await expect.poll(() => seen).toEqual(["left"]);
});

test("a reader that does not read stops the server that writes", async () => {
  let written = 0;
  serving((_asked, response) => {
    const more = () => {
      while (written < 64 * 2 ** 20 && response.write(Buffer.alloc(65_536))) written += 65_536;
    };
    response.on("drain", more);
    more();
  });
  const stream = (await session()).request({ ":authority": API });
  await once(stream, "response");
  let before = -1;
  await expect
    .poll(
      () => {
        const isStill = written === before;
        before = written;
        return isStill;
      },
      { interval: 200 },
    )
    .toBe(true);
  expect(written).toBeLessThan(16 * 2 ** 20);
  stream.destroy();
});

test("a WebSocket passes through in both directions", async () => {
  const sockets = new WebSocketServer({ server: behind.edge });
  sockets.on("connection", (socket) => socket.on("message", (data: Buffer) => socket.send(`back ${data.toString()}`)));
  onTestFinished(() => {
    sockets.close();
    behind.edge.removeAllListeners("upgrade");
  });
  const options: ClientOptions & { readonly servername: string; readonly ca: string } = {
    ca: files.authority.certificate,
    servername: SANDBOX,
    headers: { host: SANDBOX },
  };
  const client = new WebSocket(`wss://127.0.0.1:${front.port}/`, options);
  await once(client, "open");
  client.send("there");
  const [data] = (await once(client, "message")) as [Buffer];
  expect(String(data)).toBe("back there");
  client.close();
  await once(client, "close");
});

const serialOf = async (): Promise<string> => {
  const socket = tlsConnect({ host: "127.0.0.1", port: front.port, ca: files.authority.certificate, servername: API });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
};

test("a new certificate is shown to new connections, and the ones before go on", async () => {
  const before = await serialOf();
  const by = await session();
  const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  let kept: Socket | undefined;
  agent.on("free", (socket: Socket) => (kept = socket));
  await get(SANDBOX, { agent });
  await files.renew();
  await expect.poll(serialOf).not.toBe(before);
  expect((await ask(by, {})).body.toString()).toContain("api GET");
  const first = kept;
  expect(await get(SANDBOX, { agent })).toContain("edge GET");
  expect(kept).toBe(first);
});

test("files that cannot be used leave the former certificate, are a finding, and stop being one when they are mended", async () => {
  const { writeFileSync } = await import("node:fs");
  const before = await serialOf();
  writeFileSync(files.certFile, "-----BEGIN CERTIFICATE-----\nhalf");
  await expect.poll(() => site.findings().map(({ id }) => id)).toEqual(["certificates.files"]);
  expect(await serialOf()).toBe(before);
  await files.renew(Date.now() - 400 * 86_400_000);
  await expect.poll(() => site.findings().map(({ id }) => id)).toEqual(["certificates.expiry"]);
  expect(await serialOf()).toBe(before);
  await files.renew();
  await expect.poll(() => site.findings()).toEqual([]);
  await expect.poll(serialOf).not.toBe(before);
});

test("bytes that are no TLS end their connection and nothing else", async () => {
  const socket = tlsConnect({ host: "127.0.0.1", port: front.port, ca: files.authority.certificate, servername: "x" });
  await once(socket, "error").catch(() => undefined);
  const { connect: plain } = await import("node:net");
  const raw = plain(front.port, "127.0.0.1");
  raw.end("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  raw.on("error", () => undefined);
  await once(raw.resume(), "close");
  expect(await get(API)).toContain("api GET");
});
