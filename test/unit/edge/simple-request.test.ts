import { expect, test } from "vitest";
import { SimpleReader } from "../../../shared/forward/simple-request.ts";

const simple = (text: string) => new SimpleReader().read(Buffer.from(text, "latin1"));

test("a whole request without a body is read as it is", () => {
  expect(simple("GET /a?b=%20c HTTP/1.1\r\nHost: x\r\nX-A:\t b\u00fc \r\nConnection: Keep-Alive\r\n\r\n")).toEqual({
    method: "GET",
    url: "/a?b=%20c",
    httpVersionMinor: 1,
    rawHeaders: ["Host", "x", "X-A", "b\u00fc", "Connection", "Keep-Alive"],
    keepAlive: true,
  });
  expect(simple("HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).toMatchObject({ keepAlive: false });
});

test.each([
  ["part of a head", "GET / HTTP/1.1\r\nHost: x\r\n"],
  ["two requests", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /init HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["bytes behind it", "GET / HTTP/1.1\r\nHost: x\r\n\r\nx"],
  ["a length", "DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"],
  ["a coding", "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"],
  ["a method that has a body", "POST / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["an upgrade", "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n"],
  ["a connection option", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close, x-a\r\n\r\n"],
  ["an expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n"],
  ["no host", "GET / HTTP/1.1\r\n\r\n"],
  ["two hosts", "GET / HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n"],
  ["HTTP/1.0", "GET / HTTP/1.0\r\nHost: x\r\n\r\n"],
  ["an absolute target", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a fragment", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a byte above ASCII in the target", "GET /\u00fc HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a bare line feed", "GET / HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n"],
  ["a bare carriage return", "GET / HTTP/1.1\r\nHost: x\rX-A: b\r\n\r\n"],
  ["a NUL", "GET / HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n"],
  ["a folded line", "GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n"],
  ["a space before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n"],
  ["a line without a colon", "GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n"],
  ["an empty line before it", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["too many headers", `GET / HTTP/1.1\r\nHost: x\r\n${"X: y\r\n".repeat(200)}\r\n`],
  ["too many bytes", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"y".repeat(17_000)}\r\n\r\n`],
  ["something else", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ["nothing", ""],
])("%s is left to the parser", (_name, text) => {
  expect(simple(text)).toBeUndefined();
});

test("a client that repeats itself, and then does not, is read anew each time", () => {
  const reader = new SimpleReader();
  const read = (text: string) => reader.read(Buffer.from(text, "latin1"));
  const first = read("GET /a HTTP/1.1\r\nHost: x\r\nX: 1\r\n\r\n");
  const second = read("HEAD /b HTTP/1.1\r\nHost: x\r\nX: 1\r\n\r\n");
  const third = read("GET /b HTTP/1.1\r\nHost: x\r\nX: 2\r\n\r\n");
  expect(second).toEqual({ ...first, method: "HEAD", url: "/b" });
  expect(third?.rawHeaders).toEqual(["Host", "x", "X", "2"]);
  expect(read("GET /b HTTP/1.1\r\nHost: x\r\nX\r\n\r\n")).toBeUndefined();
  expect(read("GET /b HTTP/1.1\r\nHost: x\r\nX\r\n\r\n")).toBeUndefined();
  expect(read("GET /b HTTP/1.1\r\nHost: x\r\nX: 2\r\n\r\n")).toEqual(third);
});
