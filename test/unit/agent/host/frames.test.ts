/** The frames between the agent and the program that starts commands for it. */

import { expect, test } from "vitest";
import { frame, KIND, readFrames, startFrame } from "../../../../agent/host/commands/frames.ts";

function read(bytes: Buffer, pieces: number) {
  const found: { readonly number: number; readonly kind: number; readonly rest: Buffer }[] = [];
  const take = readFrames((one) => void found.push(one));
  for (let at = 0; at < bytes.length; at += pieces) take(bytes.subarray(at, at + pieces));
  return found;
}

test.each([1, 3, 12, 1_000])("frames that come in pieces of %i bytes are read whole", (pieces) => {
  const bytes = Buffer.concat([frame(1, KIND.kill), frame(2, KIND.printed, Buffer.from("text")), frame(70_000, 5)]);
  expect(read(bytes, pieces).map(({ number, kind, rest }) => [number, kind, String(rest)])).toEqual([
    [1, KIND.kill, ""],
    [2, KIND.printed, "text"],
    [70_000, 5, ""],
  ]);
});

test("a frame without its end is not read", () => {
  expect(read(frame(1, KIND.printed, Buffer.from("text")).subarray(0, -1), 5)).toEqual([]);
});

test("a start has its words and then its input, and no word has a zero in it", () => {
  const [one] = read(startFrame(7, { words: ["cat", "ü"], path: undefined, input: "in" }), 1_000);
  expect(one).toMatchObject({ number: 7, kind: KIND.start });
  expect(one?.rest.subarray(4).toString()).toBe("\0cat\0ü\0in");
  expect(() => startFrame(8, { words: ["a\0b"], path: undefined, input: "" })).toThrow("a zero in it");
});
