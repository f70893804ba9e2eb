import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  EnvelopeTracker,
  errorFrame,
  isConnectStream,
  streamFormOf,
} from "../../../../shared/proxy/connect-envelope.ts";

function envelope(flags: number, payload: string): Buffer {
  const frame = Buffer.alloc(5 + Buffer.byteLength(payload));
  frame.writeUInt8(flags, 0);
  frame.writeUInt32BE(Buffer.byteLength(payload), 1);
  frame.write(payload, 5);
  return frame;
}

test("an error may follow exactly where an envelope ends", () => {
  const lengths = fc.array(fc.nat(40), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(lengths, fc.integer({ min: 1, max: 17 }), (sizes, step) => {
      const frames = sizes.map((size) => envelope(0, "x".repeat(size)));
      const ends = new Set<number>([0]);
      let total = 0;
      for (const frame of frames) ends.add((total += frame.length));
      const stream = Buffer.concat(frames);
      const tracker = new EnvelopeTracker();
      for (let at = 0; at < stream.length; at += step) {
        expect(tracker.mayAppend).toBe(ends.has(at));
        tracker.push(stream.subarray(at, at + step));
      }
      expect(tracker.mayAppend).toBe(true);
    }),
  );
});

test("a stream that has ended itself is not ended again", () => {
  const tracker = new EnvelopeTracker();
  tracker.push(envelope(0, "data"));
  tracker.push(envelope(2, "{}"));
  expect(tracker.mayAppend).toBe(false);
});

test("the error frame is an EndStream envelope with a Connect error", () => {
  const frame = errorFrame({ code: "unavailable", message: "gone ü" });
  expect(frame.readUInt8(0)).toBe(2);
  expect(frame.readUInt32BE(1)).toBe(frame.length - 5);
  expect(JSON.parse(frame.subarray(5).toString())).toEqual({ error: { code: "unavailable", message: "gone ü" } });
});

test.each([
  ["application/connect+json", true],
  ["application/connect+proto; charset=utf-8", true],
  ["Application/Connect+JSON", true],
  ["application/json", false],
  [undefined, false],
])("%s is a Connect stream: %s", (type, expected) => {
  expect(isConnectStream(type)).toBe(expected);
});

test("a cut stream of gRPC-Web gets its status as trailers, and is followed by its own last frame", () => {
  expect(streamFormOf("application/grpc-web+proto")).toBe("grpc-web");
  expect(streamFormOf("application/grpc-web-text")).toBeUndefined();
  const tracker = new EnvelopeTracker("grpc-web");
  tracker.push(Buffer.from([0, 0, 0, 0, 1, 7]));
  expect(tracker.mayAppend).toBe(true);
  const frame = errorFrame({ code: "unavailable", message: "it was killed" }, "grpc-web");
  expect([frame[0], frame.readUInt32BE(1), frame.toString("utf8", 5)]).toEqual([
    0x80,
    frame.length - 5,
    "grpc-status: 14\r\ngrpc-message: it%20was%20killed\r\n",
  ]);
  tracker.push(frame);
  expect(tracker.mayAppend).toBe(false);
});
