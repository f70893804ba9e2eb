import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { httpBackend, rawBackend, routed, routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

/** A body that is too long for a request to upgrade. */
const LONG = "hello".padEnd(64 * 1024 + 1, "x");
const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";

/** A WebSocket takes another way through the proxies than every other protocol. */
const CARRIED = WAYS.flatMap((way) => ["raw", "websocket"].map((protocol) => ({ ...way, protocol })));

describe.each(CARRIED)("an upgrade to $protocol $route", ({ sameHost, protocol }) => {
  const door = sharedDoor({ sameHost });

  const asking = (port: number, more = "") =>
    `GET /up HTTP/1.1\r\n${routing(door.route, port)}Connection: keep-alive, Upgrade\r\nUpgrade: ${protocol}\r\n${more}\r\n`;

  /** A server that switches protocols at once, and then does what the test orders. */
  async function switching(then: (socket: Socket, head: string) => void) {
    const backend = await rawBackend(door.route.address, (socket) => {
      let text = "";
      const onData = (chunk: Buffer) => {
        text += chunk.toString("latin1");
        if (!text.includes("\r\n\r\n")) return;
        socket.removeListener("data", onData);
        then(socket, text);
      };
      socket.on("data", onData);
    });
    onTestFinished(() => backend.close());
    return backend;
  }

  test("of a WebSocket carries both kinds of message, pings, and its close", async () => {
    const backend = await httpBackend(door.route.address, () => undefined);
    onTestFinished(() => backend.close());
    const server = new WebSocketServer({ server: backend.server as import("node:http").Server });
    server.on("connection", (socket) => {
      socket.on("message", (data, binary) => socket.send(data as Buffer, { binary }));
    });
    const socket = new WebSocket(`ws://127.0.0.1:${door.port}/x`, ["chat"], {
      headers: routed(door.route, backend.port),
    });
    await once(socket, "open");
    expect(socket.protocol).toBe("chat");
    const big = randomBytes(1 << 20);
    const heard: (Buffer | string)[] = [];
    socket.on("message", (data, binary) => heard.push(binary ? (data as Buffer) : (data as Buffer).toString()));
    socket.send("hello");
    socket.send(big);
    socket.ping();
    await once(socket, "pong");
    await expect.poll(() => heard.length).toBe(2);
    expect(heard[0]).toBe("hello");
    expect(big.equals(heard[1] as Buffer)).toBe(true);
    socket.close(4001, "bye");
    const [code, reason] = (await once(socket, "close")) as [number, Buffer];
    expect([code, reason.toString()]).toEqual([4001, "bye"]);
  });

  test("of any protocol is forwarded as requested and answered", async () => {
    let seen = "";
    const backend = await switching((socket, head) => {
      seen = head;
      socket.write("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: raw/2\r\nX-A: b\r\n\r\nfirst");
      socket.pipe(socket);
    });
    const client = await RawClient.open(door.port);
    const got = await client.send(asking(backend.port, "X-Mine: 1\r\n")).until((text) => text.endsWith("first"));
    expect(got).toBe(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw/2\r\nX-A: b\r\n\r\nfirst",
    );
    expect(seen).toBe(
      `GET /up HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Mine: 1\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`,
    );
    await client.send("\x00\xff echo").until((text) => text.endsWith("\x00\xff echo"));
    client.destroy();
  });

  test.each(["Upgrade: x\r\n", `Upgrade: ${protocol}\r\n`, "Expect: 100-continue\r\n"])(
    "with another header %j is carried, and its connection ends with the client's",
    async (more) => {
      const backend = await switching((socket) => socket.write(SWITCHED));
      const client = await RawClient.open(door.port);
      const got = await client.send(asking(backend.port, more)).until((text) => text.endsWith("raw\r\n\r\n"));
      expect(got).toBe(SWITCHED);
      client.socket.resetAndDestroy();
      await expect.poll(() => backend.open()).toBe(0);
    },
  );

  test("to a host that no URL can have leaves no connection to the server behind", async () => {
    const backend = await httpBackend(door.route.address, (_request, response) => response.end());
    onTestFinished(() => backend.close());
    const absolute = asking(backend.port).replace("/up", "http://x:99999/up");
    expect(await ask(door.port, absolute)).toMatch(/^HTTP\/1\.1 (?:200|502) /);
    await expect.poll(() => backend.open()).toBe(0);
  });

  test("keeps headers with the names of an object's properties", async () => {
    const odd = "constructor: a\r\n__proto__: b\r\ntoString: c\r\n";
    let seen = "";
    const backend = await switching((socket, head) => {
      seen = head;
      socket.end(`HTTP/1.1 101 Switching Protocols\r\n${odd}Connection: Upgrade\r\nUpgrade: raw\r\n\r\n`);
    });
    const got = await ask(door.port, asking(backend.port, odd));
    expect([seen, got]).toEqual([expect.stringContaining(odd), expect.stringContaining(odd)]);
  });

  test("keeps a half-open connection open, in either direction", async () => {
    const backend = await switching((socket) => {
      socket.write(SWITCHED);
      let text = "";
      socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
      socket.on("end", () => socket.end(`you said ${text}`));
    });
    const client = await RawClient.open(door.port, true);
    await client.send(asking(backend.port)).until((text) => text.includes("101"));
    client.send("all");
    client.socket.end();
    expect(await client.toEnd()).toMatch(/you said all$/);

    const talker = await switching((socket) => {
      socket.end(`${SWITCHED}done`);
      socket.on("data", (chunk: Buffer) => (late += chunk.toString()));
    });
    let late = "";
    const second = await RawClient.open(door.port, true);
    expect(await second.send(asking(talker.port)).toEnd()).toMatch(/done$/);
    second.send("still heard");
    await expect.poll(() => late).toBe("still heard");
    second.socket.end();
    await expect.poll(() => talker.open()).toBe(0);
  });

  test("ends on both sides when either is gone", async () => {
    const backend = await switching((socket) => {
      socket.write(SWITCHED);
      socket.on("data", () => socket.resetAndDestroy());
    });
    const client = await RawClient.open(door.port);
    await client.send(asking(backend.port)).until((text) => text.includes("101"));
    client.send("die");
    await expect.poll(() => client.closed).toBe(true);
    const other = await RawClient.open(door.port);
    await other.send(asking(backend.port)).until((text) => text.includes("101"));
    other.socket.resetAndDestroy();
    await expect.poll(() => backend.open()).toBe(0);
    await expect.poll(() => door.edge.stats().active).toBe(0);
  });

  test("that the server declines gets the server's answer, and the connection ends", async () => {
    const requests: string[] = [];
    const backend = await httpBackend(door.route.address, (request, response) => {
      requests.push(request.url ?? "");
      response.write("no");
      response.end("pe");
    });
    onTestFinished(() => backend.close());
    // The edge does not look at bytes that follow the request, so they must not reach the server.
    const hidden = `GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n`;
    const client = await RawClient.open(door.port);
    const answer = await client.send(asking(backend.port) + hidden).toEnd();
    expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(answer).toContain("2\r\nno\r\n");
    expect(answer).toMatch(/0\r\n\r\n$/);
    client.send(hidden);
    await expect.poll(() => client.closed).toBe(true);
    expect(requests).toEqual(["/up"]);
  });

  test.each([
    ["no body", "HTTP/1.1 204 Nothing\r\n\r\n", /^HTTP\/1\.1 204 Nothing\r\n(?![^]*transfer-encoding)[^]*\r\n\r\n$/i],
    [
      "a folded header",
      "HTTP/1.1 400 No\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nhi",
      /\r\nx-a: b c\r\n[^]*\r\n\r\nhi$/i,
    ],
    [
      "several cookies",
      "HTTP/1.1 400 No\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
      /: a\r\nset-cookie: b\r\n/i,
    ],
    [
      "the platform's own header",
      "HTTP/1.1 400 No\r\nSvc-Proxy-Error: removed\r\nContent-Length: 2\r\n\r\nhi",
      /^HTTP\/1\.1 400 No\r\n[^]*hi$/,
    ],
    [
      "hints before it",
      "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\nhi",
      /^HTTP\/1\.1 103 Early\r\nLink: <\/a>\r\n\r\nHTTP\/1\.1 400 No\r\n/,
    ],
  ])("that the server declines with %s gets that answer", async (_name, bytes, expected) => {
    const backend = await switching((socket) => socket.end(bytes));
    const client = await RawClient.open(door.port);
    expect(await client.send(asking(backend.port)).toEnd()).toMatch(expected);
  });

  test.each([
    ["closes the connection", "", "it closed the connection before it sent a whole answer"],
    ["does not speak HTTP", "SSH-2.0-x\r\n\r\n", "its answer does not begin with HTTP"],
    ["sends hints without end", "HTTP/1.1 103 Early\r\n\r\n".repeat(20), "informational answers without end"],
  ])("to a server that %s gets 502 with the reason", async (_name, bytes, reason) => {
    const backend = await switching((socket) => socket.end(bytes));
    const client = await RawClient.open(door.port);
    const answer = await client.send(asking(backend.port)).toEnd();
    expect(answer).toMatch(/(^|\r\n\r\n)HTTP\/1\.1 502 Bad Gateway\r\n/);
    expect(answer).toContain(reason);
    expect(answer).toMatch(/"port":\d+,"code":502}$/);
    await expect.poll(() => door.edge.stats().active).toBe(0);
  });

  test("whose declining answer is cut off is cut off too, never finished", async () => {
    const backend = await switching((socket) => {
      socket.write("HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
      setImmediate(() => socket.destroySoon());
    });
    const client = await RawClient.open(door.port);
    expect(await client.send(asking(backend.port)).toEnd()).not.toMatch(/0\r\n\r\n$/);
    await expect.poll(() => door.edge.stats().active).toBe(0);
  });

  test("with bytes sent right after it passes them to the server that accepts it", async () => {
    const heard: string[] = [];
    const backend = await switching((socket, head) => {
      heard.push(head.slice(head.indexOf("\r\n\r\n") + 4));
      socket.on("data", (chunk: Buffer) => heard.push(chunk.toString()));
      setImmediate(() => socket.write(SWITCHED));
    });
    const client = await RawClient.open(door.port);
    await client.send(`${asking(backend.port)}early`).until((text) => text.includes("101"));
    await expect.poll(() => heard.join("")).toBe("early");
    expect(heard[0]).toBe("");
    client.destroy();
  });

  test("is given up when its client leaves before the answer", async () => {
    const endings: string[] = [];
    const backend = await rawBackend(door.route.address, (socket) => {
      socket.resume();
      socket.on("error", () => endings.push("reset"));
      socket.on("end", () => {
        endings.push("end");
        socket.end();
      });
    });
    onTestFinished(() => backend.close());
    for (const ending of ["end", "reset"]) {
      const client = await RawClient.open(door.port);
      client.send(asking(backend.port));
      await expect.poll(() => backend.open()).toBe(1);
      if (ending === "end") client.destroy();
      else client.socket.resetAndDestroy();
      await expect.poll(() => backend.open()).toBe(0);
      expect(endings.splice(0)).toEqual([ending]);
    }
  });

  test("to a closed port or an unknown sandbox gets an answer with the reason", async () => {
    const parked = await rawBackend(door.route.address, () => undefined);
    await parked.close();
    expect(await ask(door.port, asking(parked.port))).toMatch(/^HTTP\/1.1 502 .*"port":\d+,"code":502}$/s);
    const socket = new WebSocket(`ws://127.0.0.1:${door.port}/`, { headers: { "e2b-sandbox-id": "inobody" } });
    const [, response] = (await once(socket, "unexpected-response").catch(() => [])) as [unknown, IncomingMessage];
    expect(response.statusCode).toBe(502);
    socket.on("error", () => undefined);
    socket.terminate();
  });

  test.each([
    ["to HTTP/2", "GET", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", ""],
    ["to TLS, which Apache HttpClient offers", "GET", "Upgrade: TLS/1.2\r\n", ""],
    ["to one of several versions of TLS", "GET", "Upgrade: TLS/1.3, TLS/1.2\r\n", ""],
    ["with a body of 64 KiB", "POST", `Upgrade: raw\r\nContent-Length: ${LONG.length}\r\n`, LONG],
    [
      "with a body in chunks",
      "POST",
      "Upgrade: raw\r\nTransfer-Encoding: chunked\r\n",
      `5\r\nhello\r\n${(LONG.length - 5).toString(16)}\r\n${LONG.slice(5)}\r\n0\r\n\r\n`,
    ],
  ])("%s is served as if it had not been asked for", async (_name, method, headers, body) => {
    const seen: unknown[] = [];
    const backend = await httpBackend(door.route.address, (request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        seen.push([request.method, request.url, text, request.headers.upgrade]);
        response.end("served");
      });
    });
    onTestFinished(() => backend.close());
    const client = await RawClient.open(door.port);
    const head = `${method} /plain HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: Upgrade, HTTP2-Settings\r\n`;
    await client.send(`${head}${headers}\r\n${body}`).until((text) => text.includes("served"));
    expect(seen).toEqual([[method, "/plain", body === "" ? "" : LONG, undefined]]);
    // The connection carries the next request as before.
    await client
      .send(`GET /next HTTP/1.1\r\n${routing(door.route, backend.port)}\r\n`)
      .until((text) => text.split("served").length > 2);
    expect(seen[1]).toEqual(["GET", "/next", "", undefined]);
    client.destroy();
  });
});
