/** Bodies, answers and raw streams through `transform`: each passes as it comes, and as slowly as its reader reads. */

import { createServer, request as httpRequest, type RequestListener } from "node:http";
import { connect as netConnect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { listening } from "../../../support/peers/listening.ts";
import { dial, exchangeRaw, listenTransformed, startOrigin } from "../../../support/peers/transformed.ts";

const HOST = "api.example.test";
const head = (line: string, lines = "") => `${line} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`;
const CLOSE = "Connection: close\r\n";

async function through(answer: RequestListener) {
  const origin = await startOrigin(undefined, answer);
  const listening = await listenTransformed({
    hostname: HOST,
    tls: false,
    to: origin.port,
    port: 80,
    headers: { "X-Rule": "1" },
  });
  return { ...listening, origin, say: (bytes: string) => exchangeRaw(listening.port, undefined, bytes) };
}

test("answers without a body, with a length, in chunks with trailers, or until the end of the connection arrive unchanged", async () => {
  const { say } = await through((request, response) => {
    response.sendDate = false;
    if (request.url === "/204") response.writeHead(204, "Nothing Here").end();
    else if (request.url === "/304") response.writeHead(304, { ETag: '"x"', "Content-Length": "7" }).end();
    else if (request.url === "/cookies")
      response.writeHead(200, ["Set-Cookie", "a", "SET-cookie", "b", "Content-Length", "0"]).end();
    else if (request.url === "/end") request.socket.end("HTTP/1.1 200 Fine\r\nX: y\r\n\r\nuntil the end");
    else if (request.method === "HEAD") response.writeHead(200, { "Content-Length": "1000" }).end();
    else {
      response.writeHead(200, { Trailer: "X-Sum" });
      response.write("abc");
      response.addTrailers({ "X-Sum": "9" });
      response.end();
    }
  });
  const all = await say(
    head("GET /204") +
      head("GET /304") +
      head("HEAD /") +
      head("GET /cookies") +
      head("GET /") +
      head("GET /end", CLOSE),
  );
  expect(all).toMatch(
    /^HTTP\/1.1 204 Nothing Here\r\nConnection: keep-alive\r\n[^]*\r\n\r\nHTTP\/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 7\r\n/,
  );
  expect(all).toContain("\r\nContent-Length: 1000\r\n");
  expect(all).toContain("\r\nSet-Cookie: a\r\nSET-cookie: b\r\n");
  expect(all).toMatch(/\r\nTrailer: X-Sum\r\n[^]*3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\nHTTP/);
  expect(all).toMatch(/HTTP\/1.1 200 Fine\r\nX: y\r\n[^]*d\r\nuntil the end\r\n0\r\n\r\n$/);
});

test("a client of HTTP/1.0 gets the body without chunks", async () => {
  const { say } = await through((_, response) => void response.end("a".repeat(10)));
  const answer = await say(`GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`);
  expect(answer).not.toMatch(/chunked/i);
  expect(answer).toMatch(/\r\n\r\naaaaaaaaaa$/);
});

test("100-continue and early hints are forwarded as soon as they arrive", async () => {
  const { port } = await through((request, response) => {
    response.writeEarlyHints({ link: "</a>; rel=preload" });
    request.resume();
    request.once("end", () => response.end("done"));
  });
  const socket = await dial(port);
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.write(head("POST /", `Content-Length: 5\r\nExpect: 100-continue\r\n${CLOSE}`));
  await expect.poll(() => text).toMatch(/HTTP\/1.1 100 Continue\r\n\r\n/);
  await expect.poll(() => text).toMatch(/HTTP\/1.1 103 Early Hints\r\nLink: <\/a>; rel=preload\r\n\r\n/i);
  expect(text).not.toContain("200 OK");
  socket.write("hello");
  await expect.poll(() => text).toMatch(/HTTP\/1.1 200 OK\r\n[^]*done/);
  socket.destroy();
});

test("a client that has ended its side still gets its answer", async () => {
  const { port } = await through((_, response) => void setTimeout(() => response.end("late"), 100));
  const socket = await dial(port);
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.end(head("GET /"));
  await new Promise((resolve) => socket.once("close", resolve));
  expect(text).toContain("late");
});

test("a slow reader slows the destination down, and a slow destination slows the writer down", async () => {
  const size = 32 * 1024 * 1024;
  const sent = { bytes: 0 };
  const { port } = await through((request, response) => {
    if (request.method === "POST") return; // reads nothing
    const piece = Buffer.alloc(64 * 1024);
    const more = () => {
      while (sent.bytes < size) {
        sent.bytes += piece.length;
        if (!response.write(piece)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  const reader = await dial(port);
  reader.pause();
  reader.write(head("GET /"));
  const writer = await dial(port);
  writer.write(head("POST /", `Content-Length: ${size}\r\n`));
  writer.write(Buffer.alloc(size));
  const settled = async (look: () => number) => {
    let before = -1;
    await expect
      .poll(
        () => {
          const now = look();
          const same = now > 0 && now === before;
          before = now;
          return same;
        },
        { interval: 300 },
      )
      .toBe(true);
    return look();
  };
  expect(await settled(() => sent.bytes)).toBeLessThan(size / 2);
  expect(await settled(() => writer.bytesWritten - writer.writableLength)).toBeLessThan(size / 2);
  let received = 0;
  reader.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  reader.resume();
  await expect.poll(() => received).toBeGreaterThan(size);
  reader.destroy();
  writer.destroy();
});

test("an upgraded connection is a raw stream that ends one way at a time", async () => {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nfirst ");
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.once("end", () => socket.end(`got ${text}`));
  });
  const to = await listening(server);
  onTestFinished(() => void server.close());
  const open = () =>
    new Promise<ReturnType<typeof netConnect>>((resolve) => {
      const socket = netConnect({ port: to, host: "127.0.0.1" }, () => resolve(socket));
    });
  const { port, ended } = await listenTransformed({ hostname: HOST, tls: false, to: open, port: 80 });
  const socket = await dial(port);
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.end(`${head("GET /", "Connection: Upgrade\r\nUpgrade: raw\r\n")}early bytes`);
  await new Promise((resolve) => socket.once("close", resolve));
  expect(text).toMatch(
    /^HTTP\/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nfirst got early bytes$/,
  );
  await expect.poll(() => ended.length).toBe(1);
});

test("a kept connection that the destination has closed is replaced, and the request made again", async () => {
  const { port, origin, dials } = await through((_, response) => void response.end("ok"));
  origin.server.keepAliveTimeout = 1;
  const socket = await dial(port);
  let answers = 0;
  socket.on("data", (chunk: Buffer) => {
    answers += chunk.toString().split("HTTP/1.1 200").length - 1;
  });
  for (let i = 1; i <= 3; i += 1) {
    socket.write(head("GET /"));
    await expect.poll(() => answers).toBe(i);
    origin.server.closeIdleConnections();
  }
  expect(dials()).toBe(3);
  socket.destroy();
});

test("an answer that breaks off at the destination breaks off for the client", async () => {
  const { port } = await through((_, response) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("some");
    setTimeout(() => response.destroy(), 50);
  });
  const outcome = await new Promise((resolve) => {
    const call = httpRequest({ port, host: "127.0.0.1", headers: { Host: HOST } }, (answer) => {
      answer.resume();
      answer.once("end", () => resolve("whole"));
      answer.once("error", () => resolve("broken"));
    });
    call.end();
  });
  expect(outcome).toBe("broken");
});
