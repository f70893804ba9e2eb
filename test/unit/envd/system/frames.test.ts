import { expect, test } from "vitest";
import { AnswerSplitter, encodeFrame } from "../../../../envd/system/frames.ts";

test("a request is its size, kind and id, then its fields", () => {
  const frame = encodeFrame(7, 3, [1, -1, "ü", ["a", ""], [5]]);
  expect(frame.readUInt32LE(0)).toBe(frame.length - 4);
  expect([frame[4], frame.readUInt32LE(5)]).toEqual([7, 3]);
  expect(frame.subarray(9).toString("hex")).toBe(
    ["01000000", "ffffffff", "02000000c3bc00", "02000000", "010000006100", "0000000000", "01000000", "05000000"].join(
      "",
    ),
  );
});

test.each([1, 3, 100])("answers are found however the stream is cut: %i bytes at a time", (size) => {
  const answer = (id: number, text: string) => {
    const body = Buffer.from(text);
    const frame = Buffer.alloc(13);
    frame.writeUInt32LE(9 + body.length, 0);
    frame.writeUInt8(100, 4);
    frame.writeUInt32LE(id, 5);
    frame.writeInt32LE(body.length, 9);
    return Buffer.concat([frame, body]);
  };
  const stream = Buffer.concat([answer(1, "one"), answer(2, ""), answer(3, "drei")]);
  const splitter = new AnswerSplitter();
  const found: (number | string)[] = [];
  for (let at = 0; at < stream.length; at += size)
    for (const { id, body } of splitter.push(stream.subarray(at, at + size)))
      found.push(id, body.text(), String(body.done));
  expect(found).toEqual([1, "one", "true", 2, "", "true", 3, "drei", "true"]);
});
