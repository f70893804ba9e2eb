import * as fc from "fast-check";
import { expect, test } from "vitest";
import { checkHead, Refusal, ruled, valuesOf } from "../../../../agent/egress/rewrite/request-head.ts";
import { outgoingHead } from "../../../../shared/proxy/raw-headers.ts";

const destination = { hostname: "api.example.test", port: 443, tls: true };
const name = fc.constantFrom(
  "Host",
  "host",
  "HOST",
  "Connection",
  "X-Api",
  "x-api",
  "Authorization",
  "TE",
  "Upgrade",
  "Cookie",
  "Transfer-Encoding",
  "Content-Length",
  "Keep-Alive",
);
const value = fc.constantFrom(
  "api.example.test",
  "API.EXAMPLE.TEST.",
  "api.example.test:443",
  "other.test",
  "close",
  "x-api, cookie",
  "authorization",
  "host",
  "chunked",
  "5",
  "mine",
);
const lines = fc.array(fc.tuple(name, value), { maxLength: 10 }).map((pairs) => pairs.flat());
const url = fc.constantFrom(
  "/",
  "/a?b",
  "*",
  "https://api.example.test/x",
  "https://other.test/",
  "http://api.example.test/",
  "//other.test/",
  "x",
);

test("each request that is let through has one Host, its own, the rule's value once, and one framing", () => {
  let passed = 0;
  fc.assert(
    fc.property(lines, url, fc.constantFrom("GET", "POST", "OPTIONS", "CONNECT"), (rawHeaders, url, method) => {
      const head = { method, url, httpVersion: "1.1", rawHeaders: ["Host", "api.example.test", ...rawHeaders] };
      let path: string;
      try {
        path = checkHead(head, destination);
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal);
        return;
      }
      passed += 1;
      const { edits, added } = ruled(head, destination, new Map([["X-API", "secret"]]));
      const out = outgoingHead({ method, path, rawHeaders: head.rawHeaders }, edits, {
        added,
        upgrade: undefined,
      }).headers;
      expect(path.startsWith("/") || (path === "*" && method === "OPTIONS")).toBe(true);
      expect(valuesOf(out, "host")).toEqual(["api.example.test"]);
      expect(valuesOf(out, "x-api")).toEqual(["secret"]);
      for (const hop of ["connection", "keep-alive", "te", "upgrade"]) expect(valuesOf(out, hop)).toEqual([]);
      const framings = [...valuesOf(out, "content-length"), ...valuesOf(out, "transfer-encoding")];
      expect(framings.length).toBeLessThanOrEqual(1);
      if (valuesOf(rawHeaders, "content-length").length > 0)
        expect(framings).toEqual(valuesOf(rawHeaders, "content-length"));
      const named = valuesOf(rawHeaders, "connection").flatMap((value) => value.split(", "));
      for (const [i, line] of out.entries())
        if (i % 2 === 0 && named.includes(line.toLowerCase()))
          expect(["host", "x-api", "content-length", "transfer-encoding"]).toContain(line.toLowerCase());
    }),
    { numRuns: 3_000 },
  );
  expect(passed).toBeGreaterThan(100);
});

test.each(["api.example.te\u00adst", "\u00aapi.example.test", "api.example.test\u00ad:443"])(
  "a request for the Host %j, which only IDNA reads as the destination, is refused",
  (host) => {
    const head = { method: "GET", url: "/", httpVersion: "1.1", rawHeaders: ["Host", host] };
    expect(() => checkHead(head, destination)).toThrow(Refusal);
  },
);
