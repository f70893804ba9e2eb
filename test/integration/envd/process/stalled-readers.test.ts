/** A reader that does not read slows a process, and is dropped when it has taken nothing for half a minute. */

import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, test as anyTest, expect } from "vitest";
import { as, sharedEnvd } from "../running-envd.ts";
import { byTag, expectNoneLeft } from "./commands.ts";
import { toEnd } from "./following.ts";

const { envd, clients } = sharedEnvd();
/** The limit of 30 s, and time to write what was held up. */
const test = (name: string, body: () => Promise<void>) => anyTest.concurrent(name, body, 180_000);
/** Closed at the end of all: tests that run at the same time share the hooks of one. */
const sockets: Socket[] = [];
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});
/** More than the kernel's buffers and envd's queue take. */
const MUCH = 12_000_000;

/** Opens a stream of the process service and reads nothing of its answer. */
function openUnread(method: string, message: object, contentType = "application/connect+json"): Socket {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  const socket = connect(envd.port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.pause();
  const basic = Buffer.from("user:").toString("base64");
  socket.write(
    `POST /process.Process/${method} HTTP/1.1\r\nHost: envd\r\nAuthorization: Basic ${basic}\r\n` +
      `Content-Type: ${contentType}\r\nContent-Length: ${head.length + json.length}\r\n\r\n`,
  );
  socket.write(Buffer.concat([head, json]));
  return socket;
}

/** Reads the answer up to a text that it must contain. */
function readUntil(socket: Socket, words: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let tail = "";
    socket.on("data", (chunk: Buffer) => {
      tail = (tail + chunk.toString("latin1")).slice(-4096);
      if (tail.includes(words)) resolve(tail);
    });
    socket.once("close", () => reject(new Error(`the answer ended with ${tail}`)));
    socket.resume();
  });
}

const command = (tag: string, script: string) => ({
  process: { cmd: "/bin/sh", args: ["-c", script] },
  tag,
  stdin: false,
});

test("a command goes on without a stalled reader, other readers lose nothing, and the reader hears why it was dropped", async () => {
  const script = `read begin; head -c ${MUCH} /dev/zero; touch done`;
  const stalled = openUnread("Start", { ...command("shared", script), stdin: true });
  await expect.poll(async () => (await clients.process.list({})).processes.map(({ tag }) => tag)).toContain("shared");
  const other = clients.process.connect({ process: byTag("shared") })[Symbol.asyncIterator]();
  const first = await other.next();
  expect(first.done).toBe(false);
  const begin = { input: { case: "stdin" as const, value: Buffer.from("begin\n") } };
  await clients.process.sendInput({ process: byTag("shared"), input: begin });
  const seen = await toEnd({ [Symbol.asyncIterator]: () => other });
  expect([seen.stdout.length, seen.end?.exitCode, existsSync(join(envd.home, "done"))]).toEqual([MUCH, 0, true]);
  expect(await readUntil(stalled, "dropped")).toMatch(/"code":"aborted".*took no output for 30 s.*connect to it again/);
});

test("a command that only a stalled reader follows ends, too, also over gRPC-Web", async () => {
  const script = `head -c ${MUCH} /dev/zero; touch alone`;
  const stalled = openUnread("Start", command("alone", script), "application/grpc-web+json");
  await expect.poll(() => existsSync(join(envd.home, "alone")), { timeout: 60_000 }).toBe(true);
  expect(await readUntil(stalled, "grpc-status")).toMatch(/took%20no%20output%20for%2030%20s/);
});

test("a program in a terminal goes on without a stalled reader", async () => {
  const script = `head -c ${MUCH} /dev/zero; touch typed`;
  const stalled = openUnread("Start", { ...command("terminal", script), pty: { size: { cols: 80, rows: 24 } } });
  await expect.poll(() => existsSync(join(envd.home, "typed")), { timeout: 60_000 }).toBe(true);
  expect(await readUntil(stalled, "dropped")).toContain("the process runs on");
});

test("a reader that is slow gets every byte", async () => {
  const script = `head -c 8000000 /dev/zero | tr '\\0' x`;
  const stream = clients.process.start(
    { process: { cmd: "/bin/sh", args: ["-c", script], envs: {} }, stdin: false },
    as("user"),
  );
  async function* slowly() {
    let read = 0;
    for await (const response of stream) {
      const { event } = response.event ?? {};
      if (event?.case === "data") read += event.value.output.value?.length ?? 0;
      // A quarter of a megabyte a second: most of it waits in front of the process.
      if (read % 262_144 < 32_768) await new Promise((resolve) => setTimeout(resolve, 100));
      yield response;
    }
  }
  const seen = await toEnd(slowly());
  expect([seen.stdout.length, seen.end?.exitCode]).toEqual([8_000_000, 0]);
});

anyTest("nothing is left of what they started", async () => {
  await expectNoneLeft(clients);
});
