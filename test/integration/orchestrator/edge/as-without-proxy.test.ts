/** How exchanges end for the server and the client: the same through the edge as between the two alone. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { listening } from "../../../support/peers/listening.ts";
import { ask } from "../../../support/peers/raw-client.ts";
import { routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

const UPGRADE = "Connection: Upgrade\r\nUpgrade: raw\r\n";
const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}\r\n`;

const DECLINING = `
  const server = require("node:http").createServer();
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 401 Unauthorized\\r\\nContent-Length: 0\\r\\n\\r\\n"));
  server.listen(0, process.argv[1], () => console.log(server.address().port));
`;

interface Ending {
  /** `end`: an orderly end; else the code of the error. */
  readonly server: string;
  readonly client: string;
  readonly received: string;
}

interface Case {
  readonly name: string;
  readonly headers?: string;
  /** What the server does when it has read something. */
  serve(socket: Socket): void;
  /** What the client does with what it has received so far; called after each piece. */
  read?(socket: Socket, received: string): void;
}

const whole = (body: string, more = "") => `HTTP/1.1 200 OK\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const onBody =
  (then: (socket: Socket) => void, mark = "\r\n\r\n") =>
  (socket: Socket, received: string) => {
    if (received.includes(mark)) then(socket);
  };

const CASES: readonly Case[] = [
  {
    name: "an upgrade declined with an answer, and the end of the connection",
    headers: UPGRADE,
    serve: (socket) => void socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"),
  },
  {
    name: "an upgrade declined with an answer that ends with the connection",
    headers: UPGRADE,
    serve: (socket) => void socket.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\nno"),
  },
  {
    name: "an upgrade declined on a connection that the server keeps",
    headers: UPGRADE,
    serve: (socket) => void socket.write(whole("no")),
    read: onBody((socket) => socket.end(), "no"),
  },
  {
    name: "an upgrade that the server ends first",
    headers: UPGRADE,
    serve: (socket) => void socket.end(`${SWITCHED}bye`),
  },
  {
    name: "an upgrade that the client ends first",
    headers: UPGRADE,
    serve: (socket) => void socket.write(SWITCHED),
    read: onBody((socket) => socket.end()),
  },
  {
    name: "an upgrade that the client resets",
    headers: UPGRADE,
    serve: (socket) => void socket.write(SWITCHED),
    read: onBody((socket) => socket.resetAndDestroy()),
  },
  {
    name: "an upgrade that the server resets",
    headers: UPGRADE,
    serve: (socket) => void socket.write(`${SWITCHED}x`, () => setTimeout(() => socket.resetAndDestroy(), 50)),
  },
  { name: "a whole answer and the end of the connection", serve: (socket) => void socket.end(whole("hi")) },
  {
    name: "an answer until the end of the connection",
    serve: (socket) => void socket.end("HTTP/1.0 200 OK\r\n\r\nhi"),
  },
  {
    name: "a stream that its client leaves",
    serve: (socket) => void socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
    read: onBody((socket) => socket.end(), "a\r\n"),
  },
  {
    name: "a stream whose client resets it",
    serve: (socket) => void socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
    read: onBody((socket) => socket.resetAndDestroy(), "a\r\n"),
  },
  { name: "bytes that are not an answer", serve: (socket) => void socket.end("SSH-2.0-x\r\n\r\n") },
  { name: "the end instead of an answer", serve: (socket) => void socket.end() },
];

function endingOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let how = "end";
    socket.on("error", (error: NodeJS.ErrnoException) => (how = error.code ?? error.message));
    socket.once("close", () => resolve(how));
  });
}

async function play(one: Case, port: number, head: (to: number) => string, address: string): Promise<Ending> {
  let server: Promise<string> | undefined;
  const peer = createServer((socket) => {
    server = endingOf(socket);
    socket.once("data", () => one.serve(socket));
  });
  const to = await listening(peer, address);
  onTestFinished(() => void peer.close());
  const socket = connect(port === 0 ? { host: address, port: to } : { host: "127.0.0.1", port });
  const client = endingOf(socket);
  await once(socket, "connect");
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
    one.read?.(socket, received);
  });
  socket.write(`GET / HTTP/1.1\r\n${head(to)}${one.headers ?? "Connection: close\r\n"}\r\n`);
  const ended = await client;
  expect(server).toBeDefined();
  return { client: ended, server: (await server) ?? "", received };
}

describe.each(WAYS)("$route", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  test.each(CASES)("the server sees the same end as without a proxy: $name", async (one) => {
    const direct = await play(one, 0, () => "Host: a\r\n", door.route.address);
    const proxied = await play(one, door.port, (to) => routing(door.route, to), door.route.address);
    expect(proxied.server).toBe(direct.server);
    // What is not an answer reaches no client as one: he gets the edge's.
    if (direct.received.startsWith("HTTP/")) {
      expect(proxied.client).toBe(direct.client);
      expect(proxied.received.split(" ", 2)[1]).toBe(direct.received.split(" ", 2)[1]);
    } else expect(proxied.received).toMatch(/^HTTP\/1\.1 502 /);
  });

  test("a body without a length that breaks off is reset for a client of HTTP/1.0, and never looks complete", async () => {
    const peer = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", () => socket.destroy());
      });
    });
    const to = await listening(peer, door.route.address);
    onTestFinished(() => void peer.close());
    const socket = connect(door.port, "127.0.0.1");
    socket.resume();
    const ending = endingOf(socket);
    socket.write(`GET / HTTP/1.0\r\n${routing(door.route, to)}\r\n`);
    expect(await ending).toBe("ECONNRESET");
  });

  test.each([
    ["with a length", "Content-Length: 3\r\n"],
    ["that ends with the connection", ""],
  ])(
    "a server that refuses an upload at once and closes is heard, its answer %s",
    async (_name, framing) => {
      const peer = createServer((socket) => {
        socket.on("error", () => undefined);
        socket.end(`HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\n${framing}\r\nbig`, () => socket.destroy());
      });
      const to = await listening(peer, door.route.address);
      onTestFinished(() => void peer.close());
      const size = 8 * 1024 * 1024;
      const statuses = new Set<string>();
      for (let count = 0; count < 25; count++) {
        const socket = connect(door.port, "127.0.0.1");
        let received = "";
        socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
        socket.write(`PUT / HTTP/1.1\r\n${routing(door.route, to)}Content-Length: ${size}\r\n\r\n`);
        for (let sent = 0; sent < size; sent += 1 << 20) socket.write(Buffer.alloc(1 << 20));
        await expect.poll(() => received).toContain("\r\n\r\n");
        statuses.add(received.split(" ", 2)[1] ?? "");
        socket.on("error", () => undefined);
        socket.destroy();
      }
      expect([...statuses]).toEqual(["413"]);
    },
    60_000,
  );
});

describe.each(WAYS)("$route", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  test("a server without a handler for errors outlives visitors whose upgrade it declines", async () => {
    const server = spawn(process.execPath, ["-e", DECLINING, door.route.address], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void server.kill("SIGKILL"));
    const [line] = (await once(server.stdout, "data")) as [Buffer];
    for (let count = 0; count < 20; count++) {
      const answer = await ask(door.port, `GET / HTTP/1.1\r\n${routing(door.route, Number(line))}${UPGRADE}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    }
    expect(server.exitCode).toBeNull();
  });
});
