import { describe, expect, it } from "vitest";
import { fieldsOf, readStreamRequest, streamHeaders } from "../../../../shared/proxy/front/stream-headers.ts";

const HEAD = [":method", "GET", ":path", "/a?b=1", ":scheme", "https", ":authority", "api.a.example"];

describe("a request by HTTP/2", () => {
  it("gets its host from the authority, and its cookies in one header", () => {
    expect(readStreamRequest([...HEAD, "cookie", "a=1", "x-one", "1", "cookie", "b=2"], false)).toEqual({
      method: "GET",
      path: "/a?b=1",
      authority: "api.a.example",
      headers: ["host", "api.a.example", "x-one", "1", "cookie", "a=1; b=2"],
    });
  });

  it.each([
    ["GET", false, []],
    ["POST", false, ["content-length", "0"]],
    ["DELETE", true, ["transfer-encoding", "chunked"]],
    ["POST", true, ["transfer-encoding", "chunked"]],
  ])("%s says where its body ends", (method, hasBody, framing) => {
    const asked = readStreamRequest([...HEAD.slice(2), ":method", method], hasBody);
    expect(asked?.headers).toEqual(["host", "api.a.example", ...framing]);
  });

  it("keeps a length that it has", () => {
    const asked = readStreamRequest([...HEAD, "content-length", "5"], true);
    expect(asked?.headers).toEqual(["host", "api.a.example", "content-length", "5"]);
  });

  it("loses what is of one connection", () => {
    const of = ["transfer-encoding", "chunked", "connection", "x", "upgrade", "websocket", "keep-alive", "1"];
    expect(readStreamRequest([...HEAD, ...of], false)?.headers).toEqual(["host", "api.a.example"]);
  });

  it.each([
    ["another host than its authority", [...HEAD, "host", "other.example"]],
    ["no path", HEAD.filter((_, at) => at !== 2 && at !== 3)],
    ["a path with a space", [...HEAD.slice(0, 2), ":path", "/a b", ...HEAD.slice(4)]],
    ["a path that is a URL", [...HEAD.slice(0, 2), ":path", "https://b.example/", ...HEAD.slice(4)]],
  ])("is refused with %s", (_what, raw) => {
    expect(readStreamRequest(raw, false)).toBe(undefined);
  });
});

describe("an answer by HTTP/2", () => {
  it("has several values of one name where HTTP/2 takes them, and the first where not", () => {
    const raw = ["Set-Cookie", "a", "set-cookie", "b", "Content-Type", "text/plain", "content-type", "text/html"];
    expect(streamHeaders(201, raw)).toEqual({ ":status": 201, "set-cookie": ["a", "b"], "content-type": "text/plain" });
  });

  it("loses what is of the connection, also what Connection names", () => {
    const raw = ["Connection", "close, X-Hop", "X-Hop", "1", "Transfer-Encoding", "chunked", "x-stays", "2"];
    expect(fieldsOf(raw)).toEqual({ "x-stays": "2" });
  });
});
