/** Odd answers and requests through `transform`: what the program would read itself arrives, the rest is refused in words. */

import { createServer as createTcpServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { listening } from "../../../support/peers/listening.ts";
import { dial, exchangeRaw, listenTransformed } from "../../../support/peers/transformed.ts";

const HOST = "api.example.test";
const CLOSE = "Connection: close\r\n";
const head = (line: string, lines = CLOSE) => `${line} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`;

/** A destination that does what the test orders once it has read something. */
async function to(serve: (socket: Socket, received: string) => void) {
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (chunk: Buffer) => serve(socket, chunk.toString("latin1")));
  });
  const port = await listening(server);
  onTestFinished(() => void server.close());
  const listener = await listenTransformed({ hostname: HOST, tls: false, to: port, port: 80 });
  return { ...listener, say: (bytes: string) => exchangeRaw(listener.port, undefined, bytes) };
}

test.each([
  ["line feeds alone", "HTTP/1.1 200 OK\n\nhi", /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n2\r\nhi\r\n0\r\n\r\n$/],
  [
    "a folded header",
    "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nhi",
    /\r\nX-A: b c\r\n[^]*\r\n\r\nhi$/,
  ],
  [
    "both framings",
    `HTTP/1.1 200 OK\r\nContent-Length: ${4 << 20}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
    /^(?![^]*Content-Length)[^]*\r\n\r\n2\r\nhi\r\n0\r\n\r\n$/,
  ],
  [
    "another transfer coding",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n",
    /\r\nTransfer-Encoding: gzip, chunked\r\n[^]*\r\n\r\n2\r\nzz\r\n0\r\n\r\n$/,
  ],
  [
    "426",
    "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
    /^HTTP\/1\.1 426 [^]*\r\nUpgrade: websocket\r\n/,
  ],
  [
    "informational responses",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Hint: 1\r\n\r\nHTTP/1.1 104 Later\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a>\r\nX-Hint: 1\r\n\r\nHTTP\/1\.1 104 Later\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
  ],
])("an answer with %s arrives", async (_name, bytes, expected) => {
  const { say } = await to((socket) => socket.end(bytes, "latin1"));
  expect(await say(head("GET /"))).toMatch(expected);
});

test.each([
  ["nothing at all", "", /it closed the connection before it sent a whole answer/],
  ["TLS", "\x15\x03\x01\x00\x02\x02F", /it speaks TLS/],
  [
    "two lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
    /more than one Content-Length/,
  ],
  ["a NUL", "HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\nhi", /the header X-A of its answer has a NUL byte/],
  ["endless hints", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20), /informational answers without end/],
])("an answer with %s is refused in words, in the log too", async (_name, bytes, reason) => {
  const { say, ended } = await to((socket) => socket.end(bytes, "latin1"));
  const answer = await say(head("GET /"));
  expect(answer).toMatch(/HTTP\/1\.1 502 /);
  expect(answer).toMatch(reason);
  await expect.poll(() => ended[0]?.failed).toMatch(reason);
  expect(ended[0]?.failed).not.toContain("HPE_");
});

test.each([["LIST"], ["list"], ["BREW"]])("the method %s is refused by its name", async (method) => {
  const { say } = await to((socket) => socket.end());
  const answer = await say(head(`${method} /`));
  expect(answer).toMatch(/^HTTP\/1\.1 501 /);
  expect(answer).toContain(`The method ${method} cannot be forwarded`);
});

test.each([
  ["line feeds alone", (text: string) => text.replaceAll("\r\n", "\n"), "a line of it does not end with CR LF"],
  ["letters beyond ASCII in its target", (text: string) => text.replace("/", "/\xc3\xbc"), "must be percent-encoded"],
  ["a blank in its target", (text: string) => text.replace("/", "/a b"), "with one space between them"],
])("a request with %s is refused in words", async (_name, changed, words) => {
  const { say } = await to((socket) => socket.end());
  const answer = await say(changed(head("GET /")));
  expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*this is not an HTTP\/1\.1 request: /);
  expect(answer).toContain(words);
});

test("an upload whose body breaks off with a chunk without a size is refused at once", async () => {
  const { say } = await to((socket) => socket.resume());
  const answer = await say(`${head("POST /", "Transfer-Encoding: chunked\r\n")}5\r\nfirst\r\nzz\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*a chunk of its body has no valid size/);
});

test("an upload that the destination refuses at once gets its answer, every time", async () => {
  const { port } = await to((socket) => {
    socket.end("HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig", () =>
      socket.destroy(),
    );
  });
  const size = 8 << 20;
  for (let count = 0; count < 15; count++) {
    const socket = await dial(port);
    let received = "";
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
    socket.write(head("PUT /", `Content-Length: ${size}\r\n`));
    for (let sent = 0; sent < size; sent += 1 << 20) socket.write(Buffer.alloc(1 << 20));
    await expect.poll(() => received).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  }
});

test("a POST that asks to upgrade is forwarded with its body, and bytes behind it after the 101", async () => {
  let seen = "";
  const { port } = await to((socket, first) => {
    seen = first;
    const look = () => {
      if (!seen.endsWith('{"Tty":true}')) return;
      socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
      socket.off("data", take);
      socket.pipe(socket);
    };
    const take = (chunk: Buffer) => {
      seen += chunk.toString();
      look();
    };
    socket.on("data", take);
    look();
  });
  const socket = await dial(port);
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  socket.write(
    `${head("POST /exec/1/start", "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 12\r\n")}{"Tty":true}ls`,
  );
  await expect.poll(() => received).toMatch(/^HTTP\/1\.1 101 [^]*\r\n\r\nls$/);
  expect(seen).toMatch(
    /^POST \/exec\/1\/start HTTP\/1\.1\r\n[^]*\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n[^]*\{"Tty":true\}$/,
  );
  expect(seen).not.toContain("close");
  socket.destroy();
});

test.each([
  [
    "declines an upgrade and ends",
    "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
    /^HTTP\/1\.1 401 [^]*no$/,
  ],
  [
    "ends an upgraded connection first",
    "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nbye",
    /^HTTP\/1\.1 101 [^]*bye$/,
  ],
])("a destination that %s sees an orderly end, and no reset", async (_name, bytes, expected) => {
  const endings: string[] = [];
  const { say } = await to((socket) => {
    socket.once("close", (broken) => endings.push(broken ? "reset" : "end"));
    socket.resume();
    socket.end(bytes, "latin1");
  });
  expect(await say(head("GET /", "Connection: Upgrade\r\nUpgrade: raw\r\n"))).toMatch(expected);
  await expect.poll(() => endings).toEqual(["end"]);
});

test("an upgraded connection that the destination resets is reset, and does not look complete", async () => {
  const { port } = await to((socket) => {
    socket.write("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\npart", () =>
      setTimeout(() => socket.resetAndDestroy(), 50),
    );
  });
  const socket = await dial(port);
  const error = new Promise<string | undefined>((resolve) => {
    socket.once("error", (reason: NodeJS.ErrnoException) => resolve(reason.code));
    socket.once("end", () => resolve("end"));
  });
  socket.resume();
  socket.write(head("GET /", "Connection: Upgrade\r\nUpgrade: raw\r\n"));
  expect(await error).toBe("ECONNRESET");
});
