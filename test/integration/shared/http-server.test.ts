/** Our API servers: how much they read before they know the caller, how long they wait for it, and how they close. */

import type { AddressInfo } from "node:net";
import { Type } from "typebox";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import type { Contract } from "../../../shared/http/contract.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer, type ServerLimits } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";
import { RawClient } from "../../support/peers/raw-client.ts";

const contract = {
  put: {
    method: "POST",
    path: "/things",
    summary: "Takes a thing",
    tag: "Test",
    access: "project",
    status: 200,
    body: Type.Object({ name: Type.String() }),
    reply: Type.Object({ length: Type.Integer() }),
  },
} as const satisfies Contract;

const WAIT = { timeout: 15_000 };
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function startServer(limits: Partial<ServerLimits> = {}): Promise<number> {
  const server = createServer(createLog({ component: "test", level: "silent" }), limits);
  closers.push(() => server.close());
  serve(server, contract, { put: ({ body }) => ({ length: body.name.length }) }, (_access, request) => {
    if (request.headers["x-api-key"] !== "right") throw new AppError("unauthorized", "who are you?");
    return undefined;
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  return (server.server.address() as AddressInfo).port;
}

async function open(port: number, first: string): Promise<RawClient> {
  const client = await RawClient.open(port, true);
  onTestFinished(() => client.destroy());
  return client.send(first);
}

/** Writes a byte now and then until the connection is closed. */
function trickle({ socket }: RawClient, everyMs = 50): void {
  const timer = setInterval(() => socket.write("x"), everyMs);
  socket.once("close", () => clearInterval(timer));
  onTestFinished(() => clearInterval(timer));
}

const head = (length: number, more = "", path = "/things") =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;

describe("before the body", () => {
  test.each([
    ["a caller without a key", head(1_000_000), "401"],
    ["a path that no route has", head(1_000_000, "x-api-key: right\r\n", "/nothing"), "404"],
    ["a body that is too long", head(10_000_000, "x-api-key: right\r\n"), "413"],
    ["a body that a GET brings", head(1_000_000, "", "/things").replace("POST", "GET"), "404"],
    [
      "a chunked body of a caller without a key",
      head(0).replace("content-length: 0", "transfer-encoding: chunked"),
      "401",
    ],
  ])("%s is answered, and the connection is closed although the client goes on", async (_what, request, status) => {
    const client = await open(await startServer(), request);
    await expect.poll(() => client.received, WAIT).toMatch(new RegExp(`^HTTP/1.1 ${status} .*connection: close`, "is"));
    trickle(client);
    await expect.poll(() => client.closed, WAIT).toBe(true);
  });

  test("a refused client is not asked for its announced body; a client with a key is", async () => {
    const port = await startServer();
    const expecting = "expect: 100-continue\r\n";
    const stranger = await open(port, head(15, expecting));
    await expect.poll(() => stranger.ended, WAIT).toBe(true);
    expect(stranger.received).toMatch(/^HTTP\/1.1 401 /);
    const known = await open(port, head(15, `${expecting}x-api-key: right\r\n`));
    await expect.poll(() => known.received, WAIT).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    known.socket.write('{"name":"abcd"}');
    await expect.poll(() => known.received, WAIT).toContain('{"length":4}');
  });

  test("a client that sends all of a refused body reads its answer to the end", async () => {
    const port = await startServer();
    const body = JSON.stringify({ name: "a".repeat(30_000) });
    for (let round = 0; round < 5; round++) {
      const client = await open(port, `${head(body.length)}${body}`);
      await expect.poll(() => client.ended, WAIT).toBe(true);
      expect(client.received).toMatch(/who are you\?.*}$/s);
    }
  });

  test("bytes after a refused body are not read as the next request", async () => {
    const client = await open(await startServer(), head(5));
    await expect.poll(() => client.received, WAIT).toContain("401");
    client.socket.write(`12345${head(11, "x-api-key: right\r\n")}{"name":""}`);
    trickle(client);
    await expect.poll(() => client.closed, WAIT).toBe(true);
    expect(client.received.match(/HTTP\/1.1/g)).toHaveLength(1);
  });
});

describe("a body that is read", () => {
  test("ends with 408 when it trickles, and the connection is closed", async () => {
    const port = await startServer({ body: { leastBytes: 100, everyMs: 300 } });
    const client = await open(port, head(1_000_000, "x-api-key: right\r\n"));
    trickle(client);
    await expect.poll(() => client.received, WAIT).toMatch(/^HTTP\/1.1 408 .*"request_timeout"/s);
    await expect.poll(() => client.closed, WAIT).toBe(true);
  });

  test("does no harm when its client leaves in the middle", async () => {
    const port = await startServer({ body: { leastBytes: 100, everyMs: 100 } });
    for (let round = 0; round < 20; round++) {
      const client = await open(port, `${head(1_000, "x-api-key: right\r\n")}{"name":`);
      await expect.poll(() => client.socket.bytesWritten, WAIT).toBeGreaterThan(100);
      client.socket.destroy();
    }
    const client = await open(port, `${head(11, "x-api-key: right\r\n")}{"name":""}`);
    await expect.poll(() => client.received, WAIT).toContain('{"length":0}');
  });
});

describe("a connection without a request", () => {
  test("ends when no head comes, and when a head trickles", async () => {
    const port = await startServer({ headMs: 300 });
    const silent = await open(port, "");
    const slow = await open(port, "GET / HTTP/1.1\r\nx: ");
    trickle(slow);
    await expect.poll(() => silent.ended, WAIT).toBe(true);
    await expect.poll(() => slow.closed, WAIT).toBe(true);
    expect(slow.received).toMatch(/^HTTP\/1.1 408 .*"request_timeout"/s);
  });

  test("ends soon after requests that show no credentials, and is kept after one that does", async () => {
    const port = await startServer({ strangerIdleMs: 200 });
    const known = await open(port, `${head(11, "x-api-key: right\r\n")}{"name":""}`);
    await expect.poll(() => known.received, WAIT).toContain("200 OK");
    const server = createServer(createLog({ component: "test", level: "silent" }), { strangerIdleMs: 200 });
    closers.push(() => server.close());
    server.get("/livez", (_request, reply) => reply.send("ok"));
    await server.listen({ host: "127.0.0.1", port: 0 });
    const stranger = await open(
      (server.server.address() as AddressInfo).port,
      "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n",
    );
    await expect.poll(() => stranger.received, WAIT).toContain("200 OK");
    await expect.poll(() => stranger.ended, WAIT).toBe(true);
    known.socket.write(`${head(11, "x-api-key: right\r\n")}{"name":""}`);
    await expect.poll(() => known.received.match(/200 OK/g), WAIT).toHaveLength(2);
  });
});
