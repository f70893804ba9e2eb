/** The page's side of a stream from a sandbox, at whose other end may be a program of the sandbox. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "./page-files.ts";

const { follow } = await pageFile<{
  readonly follow: (id: string, method: string, body: object, signal: AbortSignal) => AsyncIterable<unknown>;
}>("sandbox/envd.ts");

afterEach(() => {
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
