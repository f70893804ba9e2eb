/** Requests that a sandbox sends over a connection to a host with a rule, and the bytes that arrive there, without TLS. */

import { createServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { listening } from "../../../support/peers/listening.ts";
import { dial, exchangeRaw, type ListenOptions, listenTransformed } from "../../../support/peers/transformed.ts";

const HOST = "api.example.test";
const RULE = { Authorization: "Bearer ${e2b.secrets.KEY}" };
const SECRETS = { "e2b.secrets.KEY": "s3cret" };

/** Records every byte that arrives; answers each request head with the given bytes. */
async function rawOrigin(answer: string | ((socket: Socket, head: string) => void)) {
  const seen = { text: "", ended: 0 };
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    let pending = "";
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      seen.text += chunk.toString("latin1");
      pending += chunk.toString("latin1");
      for (let end = pending.indexOf("\r\n\r\n"); end >= 0; end = pending.indexOf("\r\n\r\n")) {
        const head = pending.slice(0, end);
        pending = pending.slice(end + 4);
        if (!/^[A-Z]+ /.test(head)) continue;
        if (typeof answer === "string") socket.write(answer, "latin1");
        else answer(socket, head);
      }
    });
    socket.on("end", () => {
      seen.ended += 1;
      socket.end();
    });
  });
  const port = await listening(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port, seen };
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async function plain(answer: Parameters<typeof rawOrigin>[0] = OK, options: Partial<ListenOptions> = {}) {
  const { port, seen } = await rawOrigin(answer);
  const rule = { headers: RULE, secrets: SECRETS, allowPlainHttp: true };
  const all = { hostname: HOST, tls: false, to: port, port: 80, ...rule, ...options };
  const listening = await listenTransformed(all);
  return { ...listening, seen, say: (bytes: string) => exchangeRaw(listening.port, undefined, bytes) };
}

const get = (path: string, lines = "") => `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`;
const CLOSE = "Connection: close\r\n";

describe("requests that two parsers could read differently", () => {
  const body = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: other.test\r\n\r\n";
  const post = (lines: string) => `POST / HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n${body}`;
  test.each([
    ["both lengths", post(`Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n`)],
    ["both lengths, the other way round", post(`Transfer-Encoding: chunked\r\nContent-Length: ${body.length}\r\n`)],
    ["two lengths", post(`Content-Length: 5\r\nContent-Length: ${body.length}\r\n`)],
    ["the same length twice", post(`Content-Length: ${body.length}\r\nContent-Length: ${body.length}\r\n`)],
    ["a list of lengths", post(`Content-Length: 5, 5\r\n`)],
    ["a signed length", post(`Content-Length: +5\r\n`)],
    ["a hexadecimal length", post(`Content-Length: 0x5\r\n`)],
    ["an unknown coding", post("Transfer-Encoding: xchunked\r\n")],
    ["chunked, then something", post("Transfer-Encoding: chunked, identity\r\n")],
    ["something, then chunked", post("Transfer-Encoding: gzip, chunked\r\n")],
    ["chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")],
    ["a space before the colon", post("Transfer-Encoding : chunked\r\n")],
    ["a vertical tab in the coding", post("Transfer-Encoding: \x0bchunked\r\n")],
    ["a bare CR in a value", post("X: a\rTransfer-Encoding: chunked\r\n")],
    ["a zero byte in a value", post("X: a\0b\r\n")],
    ["a header without a name", post(": x\r\n")],
    ["chunks of HTTP/1.0", `POST / HTTP/1.0\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`],
    ["two Hosts", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: other.test\r\n\r\n`],
    ["the same Host twice", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nhost: ${HOST}\r\n\r\n`],
    ["no Host", "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"],
    ["CONNECT", `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ["a target that is no path", `GET x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ["user information in the target", `GET http://u@${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ["HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["no HTTP at all", "hello\r\n\r\n"],
    ["a bad chunk size", `POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`],
    [
      "an upgrade with a body in chunks",
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
  ])("%s: the request does not reach the destination, and the connection ends", async (_, bytes) => {
    const { seen, say } = await plain();
    const answer = await say(bytes);
    // When the body is wrong, the client may have left before its answer.
    expect(answer).toMatch(/^(HTTP\/1.1 4(00|21) |$)/);
    expect(answer.split("HTTP/1.1 4").length).toBeLessThanOrEqual(2);
    expect(seen.text).not.toMatch(/smuggled|other\.test/);
    // The rewriter may have forwarded the head before it finds the body wrong.
    expect(seen.text === "" || seen.text.startsWith("POST / HTTP/1.1\r\n")).toBe(true);
  });

  test("bare line feeds and folded lines are refused, or arrive as one line", async () => {
    for (const bytes of [`GET / HTTP/1.1\nHost: ${HOST}\n${CLOSE}\n`, get("/", `X: a\r\n b: c\r\n${CLOSE}`)]) {
      const { seen, say } = await plain();
      const answer = await say(bytes);
      expect(answer).toMatch(/^HTTP\/1.1 (200|400) /);
      expect(seen.text).not.toMatch(/[^\r]\n/);
      expect(seen.text).not.toMatch(/^ ?b: c/m);
    }
  });

  test("a head that is too long is refused with 431", async () => {
    const { seen, say } = await plain();
    expect(await say(get("/", `X: ${"a".repeat(70_000)}\r\n`))).toMatch(/^HTTP\/1.1 431 /);
    expect(seen.text).toBe("");
  });
});

describe("the Host of a request", () => {
  test.each([
    ["another", "other.test"],
    ["one below", `x.${HOST}`],
    ["the end of it", "example.test"],
    ["an address", "127.0.0.1"],
    ["another port", `${HOST}:8080`],
    ["a list", `${HOST}, other.test`],
    ["user information", `u@${HOST}`],
  ])("is answered with 421 when it is %s, and the connection ends", async (_, host) => {
    const { seen, say } = await plain();
    const answer = await say(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n${get("/second")}`);
    expect(answer).toMatch(/^HTTP\/1.1 421 Misdirected Request\r\n/);
    expect(answer).toContain(`this connection was opened to ${HOST}`);
    expect(seen.text).toBe("");
  });

  test("is checked in each request, not only in the first", async () => {
    const { seen, say } = await plain();
    const answer = await say(`${get("/1")}${get("/2")}GET /3 HTTP/1.1\r\nHost: other.test\r\n\r\n${get("/4")}`);
    expect(answer.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 421"]);
    expect(seen.text.match(/^GET \S+/gm)).toEqual(["GET /1", "GET /2"]);
  });

  test.each([
    ["capital letters", `GET / HTTP/1.1\r\nHost: API.Example.TEST\r\n${CLOSE}\r\n`, "/", HOST],
    ["a trailing dot", `GET / HTTP/1.1\r\nHost: ${HOST}.\r\n${CLOSE}\r\n`, "/", HOST],
    ["its own port", `GET / HTTP/1.1\r\nHost: ${HOST}:80\r\n${CLOSE}\r\n`, "/", `${HOST}:80`],
    ["a whole address", `GET http://${HOST}/p?q HTTP/1.1\r\nHost: ${HOST}\r\n${CLOSE}\r\n`, "/p?q", HOST],
    ["a whole address without path", `GET http://${HOST}?q HTTP/1.1\r\nHost: ${HOST}\r\n${CLOSE}\r\n`, "/?q", HOST],
    ["the server as a whole", `OPTIONS * HTTP/1.1\r\nHost: ${HOST}\r\n${CLOSE}\r\n`, "*", HOST],
  ])("names the connection's host when it has %s", async (_, bytes, path, host) => {
    const { seen, say } = await plain();
    expect(await say(bytes)).toMatch(/^HTTP\/1.1 200 /);
    expect(seen.text).toMatch(/^(GET|OPTIONS) \S+ HTTP\/1.1\r\nHost: /);
    expect(seen.text.split(" ")[1]).toBe(path);
    expect(/^Host: (.*)\r$/m.exec(seen.text)?.[1]).toBe(host);
  });

  test("does not matter when the request line has the absolute URL of another server: the answer is 421", async () => {
    const { seen, say } = await plain();
    expect(await say(`GET http://other.test/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(/^HTTP\/1.1 421 /);
    expect(await say(`GET https://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(/^HTTP\/1.1 421 /);
    expect(seen.text).toBe("");
  });
});

test("a request that must not be made twice is not sent on a connection that the destination may be closing", async () => {
  const requests = new Map<Socket, number>();
  const { port, seen, dials } = await plain((socket) => {
    const count = (requests.get(socket) ?? 0) + 1;
    requests.set(socket, count);
    if (count === 1) socket.write(OK);
    else socket.resetAndDestroy();
  });
  const socket = await dial(port);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.write(get("/"));
  await expect.poll(() => text).toMatch(/ok$/);
  text = "";
  socket.write(`POST /once HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  await expect.poll(() => text).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*ok$/);
  expect([seen.text.split("POST /once").length - 1, dials()]).toEqual([1, 2]);
  socket.destroy();
});

describe("headers", () => {
  test("of the rule replace all headers of that name from the client; hop-by-hop headers are not forwarded", async () => {
    const { seen, say } = await plain();
    await say(
      get(
        "/",
        `aUTHORIZATION: one\r\nAuthorization: two\r\nConnection: close, Authorization, X-Gone\r\nX-Gone: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Connection: x\r\nX-Kept: a\r\nx-kept: b\r\n`,
      ),
    );
    expect(seen.text).toBe(
      `GET / HTTP/1.1\r\nHost: ${HOST}\r\nX-Kept: a\r\nx-kept: b\r\nAuthorization: Bearer s3cret\r\nConnection: keep-alive\r\n\r\n`,
    );
  });

  test("with underscores, which CGI programs would read as the rule's header, are not forwarded, in trailers neither", async () => {
    const { seen, say } = await plain((socket, head) => void (head.startsWith("POST") && socket.write(OK)), {
      headers: { "X-Team": "blue" },
    });
    await say(
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nX_Team: red\r\nx-TEAM: red\r\nX_Kept: a\r\nTransfer-Encoding: chunked\r\n` +
        `Trailer: X-Sum\r\n${CLOSE}\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\nx_team: red\r\n\r\n`,
    );
    await expect.poll(() => seen.text).toContain("X-Sum: 1\r\n\r\n");
    expect(seen.text).toContain("\r\nX_Kept: a\r\n");
    expect(seen.text).toContain("\r\nX-Team: blue\r\n");
    expect(seen.text).not.toContain("red");
  });

  test("for a proxy do not reach the destination", async () => {
    const { seen, say } = await plain();
    expect(await say(get("/", `Proxy-Authorization: Basic bWluZQ==\r\n${CLOSE}`))).toMatch(/^HTTP\/1.1 200 /);
    expect(seen.text).not.toMatch(/proxy-/i);
  });

  test("are not changed when the rule has none", async () => {
    const { seen, say } = await plain(OK, { headers: {} });
    await say(get("/", `Authorization: mine\r\nX: \${e2b.secrets.KEY}\r\n${CLOSE}`));
    expect(seen.text).toContain("\r\nAuthorization: mine\r\nX: ${e2b.secrets.KEY}\r\n");
  });

  test("in trailers cannot set the header of a rule", async () => {
    const { seen, say } = await plain((socket, head) => void (head.startsWith("POST") && socket.write(OK)));
    await say(
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n${CLOSE}\r\n` +
        "3;ext=1\r\nabc\r\n0\r\nX-Sum: 1\r\nauthorization: forged\r\n\r\n",
    );
    await expect.poll(() => seen.text).toContain("X-Sum: 1\r\n\r\n");
    expect(seen.text).toContain("3\r\nabc\r\n0\r\n");
    expect(seen.text).not.toMatch(/forged/);
  });

  test("of an unknown expectation are the destination's to answer", async () => {
    const { seen, say } = await plain();
    expect(await say(get("/", `Expect: something\r\n${CLOSE}`))).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*ok$/);
    expect(seen.text).toContain("\r\nExpect: something\r\n");
  });

  test("include the length of the body although Connection names it", async () => {
    const { seen, say } = await plain();
    await say(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\nConnection: close, content-length\r\n\r\nabc`);
    // The destination answers as soon as it has a head; the body may arrive a moment later.
    await expect.poll(() => seen.text).toMatch(/\r\nContent-Length: 3\r\n[^]*\r\n\r\nabc$/);
  });
});

test("curl's upgrade to h2c is not forwarded, and the request's body is forwarded as a body", async () => {
  const { seen, say } = await plain();
  const answer = await say(
    `POST / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n` +
      "HTTP2-Settings: AAMAAABkAAQ\r\nContent-Length: 3\r\n\r\nabc",
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  await expect.poll(() => seen.text).toMatch(/\r\n\r\nabc$/);
  expect(seen.text).not.toMatch(/upgrade|h2c|HTTP2/i);
  expect(seen.text).toContain("Bearer s3cret");
});

test("TRACE, whose answer repeats the request, is refused where a rule sets headers", async () => {
  const trace = `TRACE / HTTP/1.1\r\nHost: ${HOST}\r\n${CLOSE}\r\n`;
  const ruled = await plain();
  expect(await ruled.say(trace)).toMatch(/^HTTP\/1.1 405 /);
  expect(ruled.seen.text).toBe("");
  const free = await plain(OK, { headers: {} });
  expect(await free.say(trace)).toMatch(/^HTTP\/1.1 200 /);
});

const wishFor = (protocols: string) =>
  `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocols}\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n`;
const switchTo = (protocol: string) =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;

test("h2c in a list of upgrades is not forwarded, because each request over it could name another host", async () => {
  const { seen, say } = await plain((socket) => void socket.end(switchTo("websocket")));
  expect(await say(wishFor("h2c, WebSocket, HTTP/2.0, TLS/1.0"))).toMatch(/^HTTP\/1.1 101 /);
  expect(seen.text).toContain("\r\nUpgrade: websocket\r\n");
  expect(seen.text).not.toMatch(/h2c|HTTP2|2\.0|TLS/i);
});

test("a destination that switches to a protocol that the client did not request gives 502", async () => {
  const { say } = await plain((socket) => void socket.write(switchTo("h2c")));
  expect(await say(wishFor("websocket"))).toMatch(/^HTTP\/1.1 502 [^]*that was not asked for\n$/);
});

test("a request to a destination that has ended its connection fails at once", async () => {
  const mute = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    socket.end();
  });
  const port = await listening(mute);
  onTestFinished(() => void mute.close());
  const ended = async () => {
    const socket = await dial(port);
    await new Promise((resolve) => socket.once("end", resolve).resume());
    return socket;
  };
  const { say } = await plain(OK, { to: ended });
  expect(await say(get("/", CLOSE))).toMatch(/^HTTP\/1.1 502 [^]*closed the connection\n$/);
});

test("the request to the destination ends when its client leaves", async () => {
  const { port, seen, ended } = await plain(() => undefined);
  const socket = await dial(port);
  socket.write(get("/slow"));
  await expect.poll(() => seen.text).toContain("/slow");
  socket.resetAndDestroy();
  await expect.poll(() => seen.ended).toBe(1);
  await expect.poll(() => ended.length).toBe(1);
  expect(ended[0]?.sent).toBe(get("/slow").length);
});
