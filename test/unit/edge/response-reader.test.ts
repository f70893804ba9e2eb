import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeadReader, MalformedResponseError, type ResponseHead } from "../../../shared/forward/response-head.ts";
import { ResponseReader } from "../../../shared/forward/response-reader.ts";

interface Read {
  readonly heads: ResponseHead[];
  body: string;
  trailers: readonly string[] | undefined;
  surplus: boolean | undefined;
  takenOver: string | undefined;
}

function read(pieces: readonly (string | Buffer)[], method = "GET", end = false): Read {
  const seen: Read = { heads: [], body: "", trailers: undefined, surplus: undefined, takenOver: undefined };
  const reader = new ResponseReader(
    method,
    {
      onInformational: (head) => seen.heads.push(head),
      onHead(head) {
        seen.heads.push(head);
        return head.status === 101;
      },
      onTakeover(rest) {
        seen.takenOver = rest.toString("latin1");
      },
      onData(chunk) {
        expect(seen.trailers).toBeUndefined();
        seen.body += chunk.toString("latin1");
      },
      onEnd(trailers, surplus) {
        expect(seen.trailers).toBeUndefined();
        seen.trailers = trailers;
        seen.surplus = surplus;
      },
    },
    new HeadReader(),
  );
  for (const piece of pieces) reader.push(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
  if (end) reader.finish();
  return seen;
}

describe("a response", () => {
  test("of a known length ends there", () => {
    const seen = read(["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhel", "lo"]);
    expect(seen).toMatchObject({ body: "hello", trailers: [], surplus: false });
    expect(seen.heads[0]).toMatchObject({ status: 200, reason: "OK", contentLength: 5, keepAlive: true });
    expect(seen.heads[0]?.rawHeaders).toEqual(["Content-Length", "5", "X-A", "b"]);
  });

  test("in chunks ends with its trailers", () => {
    const seen = read([
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      "3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n",
    ]);
    expect(seen).toMatchObject({ body: "abc0123456789", trailers: ["X-Sum", "1"], surplus: false });
  });

  test("without a length ends with its connection, which is then of no more use", () => {
    const seen = read(["HTTP/1.0 200 OK\r\n\r\nall", " of it"], "GET", true);
    expect(seen).toMatchObject({ body: "all of it", trailers: [] });
    expect(seen.heads[0]?.keepAlive).toBe(false);
  });

  test.each([
    ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"],
    ["GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
  ])("to %s %j has no body", (method, text) => {
    expect(read([text], method)).toMatchObject({ body: "", trailers: [] });
  });

  test("may be announced by others", () => {
    const seen = read([
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 201 X\r\n",
      "Content-Length: 0\r\n\r\n",
    ]);
    expect(seen.heads.map(({ status }) => status)).toEqual([100, 103, 201]);
  });

  test("that switches protocols gives up what follows", () => {
    expect(read(["HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nfirst bytes"])).toMatchObject({
      takenOver: "first bytes",
    });
  });

  test("of a server written by hand may end its lines with a bare line feed", () => {
    expect(read(["HTTP/1.0 200 OK\nX-A: b\n\nhello\r\n\r\nworld"], "GET", true)).toMatchObject({
      body: "hello\r\n\r\nworld",
    });
  });

  test("says when its connection may be used again", () => {
    const facts = (text: string) => read([text]).heads[0];
    expect(facts("HTTP/1.1 204 X\r\nConnection: Close\r\n\r\n")).toMatchObject({ keepAlive: false });
    expect(facts("HTTP/1.0 204 X\r\n\r\n")).toMatchObject({ keepAlive: false });
    expect(facts("HTTP/1.0 204 X\r\nConnection: keep-alive\r\n\r\n")).toMatchObject({ keepAlive: true });
    expect(facts("HTTP/1.1 204 X\r\nKeep-Alive: timeout=5, max=3\r\n\r\n")).toMatchObject({ idleHintMs: 5000 });
    // Both framings: read as chunked, and never trusted with a second request.
    const both = "HTTP/1.1 200 X\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    expect(facts(both)).toMatchObject({ keepAlive: false, contentLength: undefined });
  });

  test("with more than it announced is whole, and its connection is not", () => {
    expect(read(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"])).toMatchObject({
      body: "ok",
      surplus: true,
    });
    expect(read(["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx"])).toMatchObject({ surplus: true });
  });
});

test.each([
  "SSH-2.0-OpenSSH_9\r\n\r\n",
  "HTTP/2 200 OK\r\n\r\n",
  "HTTP/1.1 20 OK\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
  "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
  "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
  "HTTP/1.1 200 OK\r\n: empty\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1".repeat(20)}\r\n`,
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${"x".repeat(9000)}`,
  `HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}`,
  "x".repeat(70_000),
])("%.60j is malformed", (text) => {
  expect(() => read([text])).toThrow(MalformedResponseError);
});

test.each(["HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", ""])(
  "%j is not whole",
  (text) => {
    expect(() => read([text], "GET", true)).toThrow(MalformedResponseError);
  },
);

test("a response reads the same in whatever pieces it comes", () => {
  const texts = [
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nT: u\r\nV: w\r\n\r\n",
    "HTTP/1.0 200 OK\n\nhello world",
  ];
  fc.assert(
    fc.property(fc.constantFrom(...texts), fc.array(fc.nat(120), { maxLength: 30 }), (text, cuts) => {
      const places = [...new Set(cuts.map((cut) => cut % text.length))].sort((a, b) => a - b);
      const pieces = [0, ...places].map((from, index) => text.slice(from, places[index] ?? text.length));
      const whole = read([text], "GET", true);
      const cut = read(pieces, "GET", true);
      expect(cut).toEqual(whole);
    }),
  );
});

test("heads that repeat themselves, and then do not, are read anew each time", () => {
  const heads = new HeadReader();
  const at = (text: string, bodiless = false) => heads.read(Buffer.from(text, "latin1"), bodiless);
  const one = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  expect(at(`${one}hello`)).toMatchObject({ body: 5, bodyAt: one.length });
  expect(at(one)).toMatchObject({ body: 5, bodyAt: one.length });
  expect(at(one, true)).toMatchObject({ body: "none" });
  expect(at(one)).toMatchObject({ body: 5 });
  expect(at(one.replace("5", "6"))).toMatchObject({ body: 6 });
  expect(() => at("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")).toThrow(MalformedResponseError);
  expect(() => at("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")).toThrow(MalformedResponseError);
  expect(at(one)).toMatchObject({ body: 5 });
});
