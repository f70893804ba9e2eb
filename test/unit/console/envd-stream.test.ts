/** The page's side of a stream from a sandbox, at whose other end may be a program of the sandbox. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "./page-files.ts";

const { follow, readFile } = await pageFile<{
  readonly follow: (id: string, method: string, body: object, signal: AbortSignal) => AsyncIterable<unknown>;
  readonly readFile: (id: string, path: string, mostBytes: number) => Promise<{ readonly bytes: Uint8Array }>;
}>("sandbox/envd.ts");

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function messagesOf(...frames: readonly Uint8Array[]): Promise<unknown[]> {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(Buffer.concat(frames))));
  const messages: unknown[] = [];
  for await (const message of follow("an-id", "process.Process/Connect", {}, new AbortController().signal))
    messages.push(message);
  return messages;
}

function frame(text: string, flags = 0): Uint8Array {
  const body = Buffer.from(text);
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

test("the messages of a stream come one by one, until it says that it ends", async () => {
  expect(await messagesOf(frame('{"a":1}'), frame('{"b":2}'), frame("{}", 2), frame('{"c":3}'))).toEqual([
    { a: 1 },
    { b: 2 },
  ]);
});

test("a message that is announced as larger than any is not waited for", async () => {
  await expect(messagesOf(frame('{"a":1}'), new Uint8Array([0, 0xff, 0xff, 0xff, 0xff, 0x7b]))).rejects.toThrow(
    "too large",
  );
});

test("a file is read whole, and one that has more bytes than the page takes is not read on", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("text")));
  expect([...(await readFile("an-id", "/a", 4)).bytes]).toEqual([...Buffer.from("text")]);
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1_000)),
    cancel: () => void (isCancelled = true),
  });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(endless)));
  await expect(readFile("an-id", "/dev/zero", 10_000)).rejects.toThrow("/dev/zero has more than 10000 bytes");
  expect(isCancelled).toBe(true);
});

test("a stream on which nothing comes for a minute is given up, and one with a sign of life every 20 seconds goes on", async () => {
  vi.useFakeTimers();
  let source: ReadableStreamDefaultController<Uint8Array> | undefined;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => void (source = controller),
    cancel: () => void (isCancelled = true),
  });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body)));
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const message of follow("an-id", "process.Process/Connect", {}, new AbortController().signal))
      seen.push(message);
  })().catch((error: unknown) => error);
  for (let count = 0; count < 9; count++) {
    await vi.advanceTimersByTimeAsync(20_000);
    source?.enqueue(frame('{"event":{"keepalive":{}}}'));
  }
  await vi.advanceTimersByTimeAsync(59_000);
  expect([seen.length, isCancelled]).toEqual([9, false]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await reading).toMatchObject({ status: 0, message: "The connection is gone: nothing has come for a minute." });
  expect(isCancelled).toBe(true);
});
