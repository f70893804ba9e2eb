/**
 * Connections whose bytes are written from the buffer into which they were read: each connection gets its own bytes, all of
 * them, in order.
 */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { array, asyncProperty, boolean, assert as check, integer, nat, oneof, record } from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { type LargeBuffers, largeBuffers } from "../../../../agent/egress/carry/intake.ts";
import { relay } from "../../../../agent/egress/carry/relay.ts";
import { type DialDeps, dial } from "../../../../agent/egress/connect/dial.ts";
import { listening } from "../../../support/peers/listening.ts";
import { exchangeRaw, listenTransformed, dial as reach } from "../../../support/peers/transformed.ts";

const HOST = "api.example.test";
const MB = 1 << 20;
const deps = { names: { addresses: () => Promise.reject(new Error("no names")) } } as unknown as DialDeps;

/** Dials as the egress process does. */
const dialled = (port: number, buffers: LargeBuffers) => {
  const { signal } = new AbortController();
  return dial({ is: "direct", addresses: ["127.0.0.1"] }, { port, signal, buffers }, deps);
};

/** A pattern in which bytes at different places differ, so that a test notices a byte in a wrong place. */
function pattern(seed: number, length: number): Buffer {
  const words = new Uint32Array(Math.ceil(length / 4));
  let state = seed;
  for (let i = 0; i < words.length; i++) words[i] = state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Buffer.from(words.buffer, 0, length);
}

const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

async function serve(answer: (socket: Socket) => void): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
    answer(socket);
  });
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return listening(server);
}

async function write(socket: Socket, bytes: Buffer, piece: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += piece) {
    if (!socket.write(bytes.subarray(at, at + piece))) await once(socket, "drain");
  }
  socket.end();
}

/**
 * Reads to the end; pauses now and then, so that the sender has to wait. Rejects when the connection closes without an end.
 */
function read(socket: Socket, stops: boolean): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let since = 0;
  socket.on("data", (piece: Buffer) => {
    pieces.push(piece);
    since += piece.length;
    if (!stops || since < MB) return;
    since = 0;
    socket.pause();
    setTimeout(() => socket.resume(), 5);
  });
  return new Promise((resolve, reject) => {
    socket.once("end", () => resolve(Buffer.concat(pieces)));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed without an end")));
  });
}

const flow = record({
  seed: nat(),
  up: integer({ min: 0, max: 300_000 }),
  down: oneof(integer({ min: 0, max: 100_000 }), integer({ min: MB, max: 4 * MB })),
  piece: integer({ min: 1_000, max: 300_000 }),
  slow: boolean(),
  /** Decides which side ends first: a waiting server answers only after the other direction has ended. */
  serverWaits: boolean(),
});

test("relayed at the same time, every connection gets its own bytes, whole, and both ends", async () => {
  const buffers = largeBuffers();
  await check(
    asyncProperty(array(flow, { minLength: 1, maxLength: 6 }), async (flows) => {
      const outcomes = flows.map(async ({ seed, up, down, piece, slow, serverWaits }) => {
        const there = pattern(seed, up);
        const back = pattern(seed + 1, down);
        const served = { up: "" };
        const port = await serve((socket) => {
          const all = read(socket, slow).then((bytes) => {
            served.up = sum(bytes);
          });
          void (serverWaits ? all : Promise.resolve()).then(() => write(socket, back, piece));
        });
        const counted: unknown[] = [];
        const through = await serve((socket) => {
          socket.pause();
          void dialled(port, buffers).then(async (upstream) => {
            counted.push(await relay(socket, upstream, Buffer.alloc(0)).closed);
          });
        });
        const client = await reach(through);
        const [received] = await Promise.all([read(client, slow), write(client, there, piece)]);
        expect(sum(received)).toBe(sum(back));
        await expect.poll(() => counted).toEqual([{ sent: up, received: down }]);
        await expect.poll(() => served.up).toBe(sum(there));
      });
      await Promise.all(outcomes);
    }),
    { numRuns: 12 },
  );
});

async function origin(answer: (socket: Socket, path: string) => void) {
  const buffers = largeBuffers();
  const port = await serve((socket) => {
    socket.on("data", (chunk: Buffer) => answer(socket, chunk.toString("latin1").split(" ")[1] ?? ""));
  });
  return listenTransformed({ hostname: HOST, tls: false, port: 80, to: () => dialled(port, buffers) });
}

const get = (path: string, lines = "", method = "GET") => `${method} ${path} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`;
const headOf = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;

test("a long answer is whole, and the next request on the connection is answered, long or short", async () => {
  const bodies = { "/long": pattern(1, 5 * MB + 17), "/short": pattern(2, 300), "/again": pattern(3, 3 * MB) };
  const { port, ended } = await origin((socket, path) => {
    const body = bodies[path as keyof typeof bodies];
    socket.write(headOf(body.length));
    socket.write(body);
  });
  const text = await exchangeRaw(
    port,
    undefined,
    get("/long") + get("/short") + get("/again", "Connection: close\r\n"),
  );
  let at = 0;
  for (const body of Object.values(bodies)) {
    at = text.indexOf("\r\n\r\n", at) + 4;
    expect(sum(Buffer.from(text.slice(at, at + body.length), "latin1"))).toBe(sum(body));
    at += body.length;
  }
  expect(at).toBe(text.length);
  await expect.poll(() => ended).toMatchObject([{ received: text.length }]);
});

test("the client of a long answer that breaks off sees it break off, and the answer to HEAD ends after its head", async () => {
  const { port } = await origin((socket, path) => {
    socket.write(headOf(4 * MB));
    if (path !== "/cut") return;
    socket.write(pattern(4, 2 * MB), () => socket.end());
  });
  const head = await exchangeRaw(port, undefined, get("/", "Connection: close\r\n", "HEAD"));
  expect(head).toMatch(/^HTTP\/1.1 200 OK[\s\S]*Content-Length: 4194304\r\n[\s\S]*\r\n\r\n$/);
  const client = await reach(port);
  client
    .on("error", () => undefined)
    .on("end", () => client.end())
    .resume();
  client.write(get("/cut"));
  await once(client, "close");
  expect(client.bytesRead).toBeLessThan(2 * MB + 1_000);
});

test("bytes beyond the announced length are not forwarded", async () => {
  const { port } = await origin((socket) => {
    socket.write(headOf(2 * MB));
    socket.write(Buffer.concat([pattern(5, 2 * MB), Buffer.from("HTTP/1.1 200 OK\r\nX-Smuggled: 1\r\n\r\n")]));
  });
  const text = await exchangeRaw(port, undefined, get("/") + get("/", "Connection: close\r\n"));
  expect(text).not.toContain("X-Smuggled");
  expect(text.length).toBeGreaterThan(4 * MB);
});

test("little of a long answer leaves the destination while the client does not read", async () => {
  const size = 64 * MB;
  const sent = { bytes: 0 };
  const { port } = await origin((socket) => {
    socket.write(headOf(size));
    const piece = Buffer.alloc(64 * 1024);
    const more = () => {
      while (sent.bytes < size) {
        sent.bytes += piece.length;
        if (!socket.write(piece)) return void socket.once("drain", more);
      }
    };
    more();
  });
  const client = await reach(port);
  client.pause();
  client.write(get("/"));
  let before = -1;
  const still = () => {
    const same = sent.bytes > MB && sent.bytes === before;
    before = sent.bytes;
    return same;
  };
  await expect.poll(still, { interval: 300 }).toBe(true);
  expect(sent.bytes).toBeLessThan(size / 2);
  let received = 0;
  client.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  client.resume();
  await expect.poll(() => received).toBeGreaterThan(size);
});
