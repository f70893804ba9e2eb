import { describe, expect, test } from "vitest";
import {
  endToEnd,
  forwardableTrailers,
  type HopHeaders,
  outgoingHead,
  UnforwardableError,
} from "../../../shared/forward/raw-headers.ts";

const keepAll = () => false;
const plain: HopHeaders = { added: "", upgrade: undefined };
const head = (rawHeaders: readonly string[], edits = {}, hop = plain) =>
  outgoingHead({ method: "GET", path: "/p?q=1", rawHeaders }, { drops: keepAll, ...edits }, hop);

test("a request keeps its target, the spelling and the order of its headers", () => {
  const { text, framing } = head(["Host", "a.b", "X-One", "1", "x-ONE", "2", "Cookie", "a=b"]);
  expect(text).toBe("GET /p?q=1 HTTP/1.1\r\nHost: a.b\r\nX-One: 1\r\nx-ONE: 2\r\nCookie: a=b\r\n\r\n");
  expect(framing).toBe("none");
});

test("hop-by-hop headers, and those a Connection header names, stop here", () => {
  const given = [
    "Host",
    "a",
    "Connection",
    "keep-alive, X-Mine",
    "X-Mine",
    "1",
    "Keep-Alive",
    "timeout=5",
    "Upgrade",
    "h2c",
  ];
  const more = ["Proxy-Authorization", "x", "TE", "gzip", "HTTP2-Settings", "x", "Proxy-Connection", "x"];
  expect(head([...given, ...more]).text).toBe("GET /p?q=1 HTTP/1.1\r\nHost: a\r\n\r\n");
});

test("a Connection header cannot take away what frames or addresses the message", () => {
  const { text, framing } = head(["Host", "a", "Content-Length", "3", "Connection", "content-length, host, close"]);
  expect(text).toContain("Host: a\r\nContent-Length: 3\r\n");
  expect(framing).toBe("length");
});

describe("framing", () => {
  test("is written anew for a chunked body", () => {
    expect(head(["Host", "a", "transfer-encoding", " Chunked "])).toMatchObject({
      text: "GET /p?q=1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
      framing: "chunked",
    });
  });

  test.each([["gzip, chunked"], ["identity"], ["chunked, chunked"]])("%s is refused", (coding) => {
    expect(() => head(["Host", "a", "Transfer-Encoding", coding])).toThrow(UnforwardableError);
  });

  test("is never said twice", () => {
    const twice = ["Host", "a", "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked"];
    expect(() => head(twice)).toThrow(UnforwardableError);
  });
});

test("what the hop adds comes last, and what it drops does not come", () => {
  const edits = { drops: (name: string, value: string) => name === "x-secret" && value === "s", host: "masked:80" };
  const { text } = head(["Host", "a", "X-Secret", "s", "X-Secret", "t"], edits, {
    added: "X-Hop: 1\r\n",
    upgrade: "websocket",
  });
  expect(text).toBe(
    "GET /p?q=1 HTTP/1.1\r\nHost: masked:80\r\nX-Secret: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Hop: 1\r\n\r\n",
  );
});

test("trailers are announced to servers that are told of them", () => {
  expect(head(["Host", "a", "TE", "trailers, deflate;q=0.5"]).text).toContain("\r\nTE: trailers\r\n");
});

test("Expect is seen however it is written", () => {
  expect(head(["Host", "a", "expect", "100-Continue"]).expectsContinue).toBe(true);
  expect(head(["Host", "a"]).expectsContinue).toBe(false);
});

test("a response loses its hop-by-hop headers and nothing else", () => {
  const raw = [
    "Set-Cookie",
    "a=1",
    "Connection",
    "close, x-a",
    "X-A",
    "1",
    "Set-Cookie",
    "b=2",
    "Transfer-Encoding",
    "chunked",
  ];
  expect(endToEnd(raw, keepAll)).toEqual(["Set-Cookie", "a=1", "Set-Cookie", "b=2"]);
  expect(endToEnd(raw, (name) => name === "set-cookie")).toEqual([]);
});

test("a trailer cannot frame, route or authenticate", () => {
  const raw = ["X-Sum", "1", "Content-Length", "3", "Host", "b", "Authorization", "x", "Set-Cookie", "x"];
  expect(forwardableTrailers(raw)).toEqual(["X-Sum", "1"]);
});
