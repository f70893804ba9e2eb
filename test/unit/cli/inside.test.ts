/** What `svc` takes from inside of a sandbox, and how it gets there. */

import { array, assert, constantFrom, integer, property, string } from "fast-check";
import { expect, test } from "vitest";
import { readEvents } from "../../../cli/api/event-stream.ts";
import { hostOf, placeOf } from "../../../cli/inside/address.ts";
import { createEscapeKey } from "../../../cli/inside/escape-key.ts";
import { pathBelow } from "../../../cli/inside/tree.ts";

test.each([
  ["/data", "/data/a/b.txt", "a/b.txt"],
  ["/", "/a", "a"],
  ["/data", "/data/../etc/passwd", undefined],
  ["/data", "/data/a/../../b", undefined],
  ["/data", "/data2/a", undefined],
  ["/data", "/data//a", undefined],
  ["/data", "/data/./a", undefined],
  ["/data", "/data/a\0b", undefined],
  ["/data", "/data", undefined],
])("below %s the path %j of a sandbox is %j", (root, path, wanted) => {
  expect(pathBelow(root, { path })).toBe(wanted);
});

const at = { sandboxID: "i1", port: 8000, domain: "localhost:3002" };

test("one address for all sandboxes finds them by headers", () => {
  expect(placeOf({ sandboxUrl: "http://127.0.0.1:3002", domain: undefined }, at)).toEqual({
    url: "http://127.0.0.1:3002",
    headers: { "e2b-sandbox-id": "i1", "e2b-sandbox-port": "8000" },
  });
});

test.each([
  [{ sandboxUrl: undefined, domain: undefined }, "localhost:3002", "http://8000-i1.localhost:3002"],
  [{ sandboxUrl: undefined, domain: "sbx.example.org" }, "localhost:3002", "https://8000-i1.sbx.example.org"],
  [{ sandboxUrl: "http://10.0.0.1:3002", domain: undefined }, "sbx.example.org", "http://8000-i1.sbx.example.org"],
  [{ sandboxUrl: "https://10.0.0.1", domain: undefined }, "sbx.example.org", "https://8000-i1.sbx.example.org"],
])("with %j and the platform's domain %s the host of a port is %s", (settings, domain, wanted) => {
  expect(hostOf(settings, { ...at, domain })).toBe(wanted);
});

/** What reaches the shell of what is typed, in pieces of any size, and whether it leaves. */
function typed(text: string, sizes: readonly number[] = [text.length]): readonly [string, boolean] {
  const key = createEscapeKey();
  const bytes = Buffer.from(text);
  let sent = "";
  let from = 0;
  for (const size of [...sizes, bytes.length]) {
    const { data, leaves } = key.take(bytes.subarray(from, from + size));
    sent += Buffer.from(data).toString();
    if (leaves) return [sent, true];
    from += size;
  }
  return [sent, false];
}

test.each([
  ["ls\r", "ls\r", false],
  ["~.", "", true],
  ["ls\r~.more", "ls\r", true],
  ["ls~.", "ls~.", false],
  ["~~.", "~.", false],
  ["~x", "~x", false],
  ["\r~~\r~.", "\r~\r", true],
])("of the keys %j the shell gets %j, and they leave: %s", (text, sent, leaves) => {
  expect(typed(text)).toEqual([sent, leaves]);
});

test("keys mean the same in whatever pieces they come", () => {
  assert(
    property(string({ unit: constantFrom("~", ".", "\r", "x") }), array(integer({ min: 0, max: 3 })), (text, sizes) => {
      expect(typed(text, sizes)).toEqual(typed(text));
    }),
  );
});

test("events of a stream are read in whatever pieces they come, without comments", async () => {
  const stream = Buffer.from(
    ': hello\n\nid: 1\nevent: a\ndata: {"x":\ndata: "ü"}\n\n: alive\n\nid: 2\ndata: b\r\n\r\n',
  );
  for (const size of [1, 7, stream.length]) {
    const pieces = Array.from({ length: Math.ceil(stream.length / size) }, (_, index) =>
      stream.subarray(index * size, (index + 1) * size),
    );
    const events = [];
    async function* body() {
      yield* pieces;
    }
    for await (const event of readEvents(body())) events.push(event);
    expect(events).toEqual([
      { id: "1", event: "a", data: '{"x":\n"ü"}' },
      { id: "2", event: "message", data: "b" },
    ]);
  }
});
