import { describe, expect, test } from "vitest";
import {
  endToEnd,
  forwardableTrailers,
  type HopHeaders,
  outgoingHead,
  UnforwardableError,
} from "../../../../shared/proxy/raw-headers.ts";

const keepAll = () => false;
const plain: HopHeaders = { added: [], upgrade: undefined };
const head = (rawHeaders: readonly string[], edits = {}, hop = plain) =>
  outgoingHead({ method: "GET", path: "/p?q=1", rawHeaders }, { drops: keepAll, ...edits }, hop);

test("a request keeps the spelling and the order of its headers", () => {
  const given = ["Host", "a.b", "X-One", "1", "x-ONE", "2", "Cookie", "a=b"];
  const { headers, framing } = head(given);
  expect(headers).toEqual(given);
  expect(framing).toBe("none");
});

test("hop-by-hop headers, and those that a Connection header names, are not forwarded", () => {
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
  expect(head([...given, ...more]).headers).toEqual(["Host", "a"]);
});

test("a Connection header cannot remove headers that frame or address the message", () => {
  const { headers, framing } = head(["Host", "a", "Content-Length", "3", "Connection", "content-length, host, close"]);
  expect(headers).toEqual(["Host", "a", "Content-Length", "3"]);
  expect(framing).toBe("length");
});

describe("framing", () => {
  test("is replaced for a chunked body", () => {
    expect(head(["Host", "a", "transfer-encoding", " Chunked "])).toMatchObject({
      headers: ["Host", "a", "Transfer-Encoding", "chunked"],
      framing: "chunked",
    });
  });

  test.each([["gzip, chunked"], ["identity"], ["chunked, chunked"]])("%s is refused", (coding) => {
    expect(() => head(["Host", "a", "Transfer-Encoding", coding])).toThrow(UnforwardableError);
  });

  test("is never sent twice", () => {
    const twice = ["Host", "a", "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked"];
    expect(() => head(twice)).toThrow(UnforwardableError);
  });
});

test("headers that the proxy adds come last, and those that it drops are absent", () => {
  const edits = { drops: (name: string, value: string) => name === "x-secret" && value === "s", host: "masked:80" };
  const { headers } = head(["Host", "a", "X-Secret", "s", "X-Secret", "t"], edits, {
    added: ["X-Hop", "1"],
    upgrade: "websocket",
  });
  const text = "Host: masked:80, X-Secret: t, Connection: Upgrade, Upgrade: websocket, X-Hop: 1";
  expect(headers).toEqual(text.split(/: |, /));
});

test("trailers are announced to servers that receive them", () => {
  expect(head(["Host", "a", "TE", "trailers, deflate;q=0.5"]).headers).toEqual(["Host", "a", "TE", "trailers"]);
});

test("Expect is recognised in any spelling", () => {
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

test("a method that Node sends with a body gets Content-Length: 0 without one", () => {
  const post = (rawHeaders: readonly string[]) =>
    outgoingHead({ method: "POST", path: "/", rawHeaders }, { drops: keepAll }, plain);
  expect(post(["Host", "a"])).toMatchObject({ headers: ["Host", "a", "Content-Length", "0"], framing: "none" });
  expect(post(["Content-Length", "0"])).toMatchObject({ headers: ["Content-Length", "0"], framing: "empty" });
});

test("a trailer cannot frame, route or authenticate, in whichever spelling", () => {
  const raw = ["X-Sum", "1", "Content-Length", "3", "Host", "b", "Authorization", "x", "Set_Cookie", "x"];
  const routing = ["E2b-Sandbox-Id", "i", "e2b_sandbox_id", "i", "X-Access-Token", "t"];
  const dropped = new Set(["e2b-sandbox-id", "x-access-token"]);
  expect(forwardableTrailers([...raw, ...routing], (name) => dropped.has(name))).toEqual([["X-Sum", "1"]]);
});
