import { request } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { listening } from "../../support/peers/listening.ts";
import { type RunningEnvd, runEnvd } from "./running-envd.ts";

let envd: RunningEnvd;
const servers: Server[] = [];
beforeAll(async () => {
  envd = await runEnvd({ controlToken: "node-secret" });
});
afterAll(() => envd.stop());
afterEach(() => servers.splice(0).forEach((server) => server.close()));

async function serve(host: string, onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, onConnection);
  servers.push(server);
  return listening(server, host);
}

interface Opened {
  readonly status: number | undefined;
  readonly socket: Socket | undefined;
}

function open(query: string, headers: Record<string, string> = { "svc-node-token": "node-secret" }): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const options = {
      port: envd.port,
      method: "POST",
      path: `/connect?${query}`,
      headers: { connection: "Upgrade", upgrade: "svc-tcp", ...headers },
    };
    const call = request(options, (response) => {
      response.resume();
      resolve({ status: response.statusCode, socket: undefined });
    });
    call.on("upgrade", (response, socket: Socket, head: Buffer) => {
      if (head.length > 0) socket.unshift(head);
      resolve({ status: response.statusCode, socket });
    });
    call.on("error", reject);
    call.end();
  });
}

async function text(socket: Socket): Promise<string> {
  let all = "";
  for await (const chunk of socket) all += String(chunk);
  return all;
}

test.each(["127.0.0.1", "::1", "0.0.0.0", "::"])(
  "a server on %s is reached, and each direction ends by itself",
  async (host) => {
    const port = await serve(host, (socket) => {
      let heard = "";
      socket.on("data", (chunk) => (heard += String(chunk)));
      // The server answers only after the caller's end, which has to come through by itself.
      socket.on("end", () => socket.end(`heard ${heard}`));
    });
    const { status, socket } = await open(`port=${port}`);
    expect(status).toBe(101);
    socket?.end("hello");
    expect(socket === undefined ? "" : await text(socket)).toBe("heard hello");
  },
);

test("a server that listens on one of the sandbox's own addresses alone is reached", async () => {
  const own = Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal);
  if (own === undefined) throw new Error("this machine has no address besides the loopback");
  const port = await serve(own.address, (socket) => socket.end(`at ${own.address}`));
  const { socket } = await open(`port=${port}`);
  expect(socket === undefined ? "" : await text(socket)).toBe(`at ${own.address}`);
});

test.each([
  ["ends", (socket: Socket) => void socket.end("part"), "end"],
  [
    "resets",
    (socket: Socket) => void socket.write("part", () => setTimeout(() => socket.resetAndDestroy(), 20)),
    "ECONNRESET",
  ],
])("the caller of a server that %s the connection sees the same", async (_name, serveOne, expected) => {
  const port = await serve("127.0.0.1", serveOne);
  const { socket } = await open(`port=${port}`);
  const ending = new Promise((resolve) => {
    socket?.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    socket?.once("end", () => resolve("end"));
  });
  socket?.resume();
  expect(await ending).toBe(expected);
  socket?.destroy();
});

test("all bytes of a server that speaks first and ends first arrive", async () => {
  const port = await serve("127.0.0.1", (socket) => socket.end("welcome"));
  const { socket } = await open(`port=${port}`);
  expect(socket === undefined ? "" : await text(socket)).toBe("welcome");
});

test("megabytes go through both ways, at the pace of the slower end", async () => {
  const port = await serve("127.0.0.1", (socket) => socket.pipe(socket));
  const { socket } = await open(`port=${port}`);
  const bytes = Buffer.alloc(20_000_000, "0123456789");
  let size = 0;
  socket?.on("data", (chunk: Buffer) => (size += chunk.length));
  socket?.end(bytes);
  await expect.poll(() => size).toBe(bytes.length);
});

test("the connection closes when its caller vanishes", async () => {
  const closed: string[] = [];
  const port = await serve("127.0.0.1", (socket) => {
    socket.on("error", () => undefined);
    socket.on("end", () => socket.end());
    socket.on("close", () => closed.push("closed"));
    socket.write("x");
  });
  const { socket } = await open(`port=${port}`);
  socket?.resetAndDestroy();
  await expect.poll(() => closed).toEqual(["closed"]);
});

test("a closed port fails at once", async () => {
  const port = await serve("127.0.0.1", () => undefined);
  servers.splice(0).forEach((server) => server.close());
  await expect.poll(async () => (await open(`port=${port}`)).status).toBe(502);
});

test.each([
  ["port=0", 400],
  ["port=65536", 400],
  ["port=x", 400],
  ["", 400],
])("%j is refused with %i", async (query, status) => {
  expect((await open(query)).status).toBe(status);
});

test("envd itself, other protocols, other paths and strangers are refused", async () => {
  expect((await open(`port=${envd.port}`)).status).toBe(400);
  expect((await open("port=80", { "svc-node-token": "node-secret", upgrade: "websocket" })).status).toBe(400);
  expect((await open("port=80", {})).status).toBe(401);
  const socket = connect(envd.port, "127.0.0.1");
  socket.write("GET /files HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: svc-tcp\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /);
});
