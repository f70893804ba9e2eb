/** Messages between orchestrator and edge are read as they were written, however the network cuts them up. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lineReader } from "../../../../orchestrator/edge/following/lines.ts";
import type { Line } from "../../../../orchestrator/edge/following/messages.ts";

const line = fc.oneof(
  fc.record({ is: fc.constant("pong" as const), number: fc.nat() }),
  fc.record({
    is: fc.constant("node" as const),
    nodeId: fc.string({ unit: "binary" }),
    proxyUrl: fc.webUrl(),
    token: fc.string({ unit: "binary" }),
  }),
  fc.constant({ is: "whole" as const }),
);

function readAll(bytes: Buffer, cuts: readonly number[]): Line[] {
  const reader = lineReader();
  const read: Line[] = [];
  let at = 0;
  for (const cut of [...cuts.map((each) => each % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]) {
    reader.read(bytes.subarray(at, cut), (each) => read.push(each));
    at = cut;
  }
  return read;
}

test("lines that are cut anywhere are read whole and in order", () => {
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat()), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((each) => `${JSON.stringify(each)}\n`).join(""));
      expect(readAll(bytes, cuts)).toEqual(lines);
    }),
  );
});

test("a message of a newer orchestrator is passed over, and a known one in another form is an error", () => {
  expect(readAll(Buffer.from('{"is":"later"}\n{"is":"whole"}\n'), [])).toEqual([{ is: "whole" }]);
  expect(() => readAll(Buffer.from('{"is":"pong"}\n'), [])).toThrow("a message 'pong'");
  expect(() => readAll(Buffer.from("no JSON\n"), [])).toThrow();
});

test("a line without an end is an error when it has become too long", () => {
  const reader = lineReader(10);
  reader.read(Buffer.from("1234567890"), () => undefined);
  expect(() => reader.read(Buffer.from("1"), () => undefined)).toThrow("more than 10 characters");
});
