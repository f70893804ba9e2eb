/** Reading the name from a connection's first bytes: whole, in pieces, ambiguous, or without a name. */

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Glimpse, glimpseServerName } from "../../../../agent/egress/sniff/client-hello.ts";
import { glimpseHost } from "../../../../agent/egress/sniff/request-head.ts";
import { clientHello, handMade, inRecords, serverNames } from "../../../support/egress/hello.ts";

type Look = (bytes: Buffer) => Glimpse;

/** Feeds the bytes one by one, and after each "more" waits for as many bytes as it asks for. */
function byteByByte(look: Look, bytes: Buffer): Glimpse {
  let wanted = 1;
  for (let length = 1; length <= bytes.length; length += 1) {
    if (length < wanted) continue;
    const seen = look(bytes.subarray(0, length));
    if (seen.is !== "more") return seen;
    expect(seen.bytes).toBeGreaterThan(length);
    wanted = seen.bytes;
  }
  return { is: "more", bytes: wanted };
}

const name = (text: string) => ({ is: "name", name: text });
const none = { is: "none" };
const SNI = 0;
const ECH = 0xfe0d;

describe("a ClientHello", () => {
  test.each(["example.com", "EXAMPLE.com", "a.very.long.name.example.com"])(
    "for %s names that host, also in pieces and in small records",
    async (host) => {
      const hello = await clientHello(host);
      const expected = name(host.toLowerCase());
      expect(glimpseServerName(hello)).toEqual(expected);
      expect(byteByByte(glimpseServerName, hello)).toEqual(expected);
      // The key share of a new OpenSSL alone is more than the thousand records that are read.
      for (const size of [2, 3, 5, 100]) {
        expect(glimpseServerName(inRecords(hello, size))).toEqual(expected);
        expect(byteByByte(glimpseServerName, inRecords(hello, size))).toEqual(expected);
      }
    },
  );

  test("of few bytes names its host with one byte in each record too", () => {
    const hello = inRecords(handMade([[SNI, serverNames(Buffer.from("example.com"))]]), 1);
    expect(glimpseServerName(hello)).toEqual(name("example.com"));
    expect(byteByByte(glimpseServerName, hello)).toEqual(name("example.com"));
  });

  test("with one byte in each record costs no more time than its bytes", () => {
    const body = Buffer.alloc(2_000);
    body[0] = 1;
    body.writeUIntBE(1_990, 1, 3);
    const hello = inRecords(Buffer.concat([Buffer.alloc(5), body]), 1);
    const before = process.cpuUsage();
    for (let times = 0; times < 3; times += 1) expect(byteByByte(glimpseServerName, hello)).toEqual(none);
    // Reading takes milliseconds when it copies nothing before all is there, and twenty seconds when it copies everything
    // for each byte.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(6);
  });

  test("without a name names no host", async () => {
    expect(glimpseServerName(await clientHello())).toEqual(none);
    expect(glimpseServerName(handMade([]))).toEqual(none);
  });

  test("with encrypted parts has its outer name", () => {
    const outer = serverNames(Buffer.from("outer.test"));
    expect(
      glimpseServerName(
        handMade([
          [ECH, Buffer.alloc(200)],
          [SNI, outer],
        ]),
      ),
    ).toEqual(name("outer.test"));
    expect(glimpseServerName(handMade([[ECH, Buffer.alloc(200)]]))).toEqual(none);
  });

  test.each([
    ["two names", [[SNI, serverNames(Buffer.from("a.test"), Buffer.from("b.test"))]]],
    [
      "the extension twice",
      [
        [SNI, serverNames(Buffer.from("a.test"))],
        [SNI, serverNames(Buffer.from("b.test"))],
      ],
    ],
    ["NUL", [[SNI, serverNames(Buffer.from("evil.test\0.a.test"))]]],
    ["an address", [[SNI, serverNames(Buffer.from("127.0.0.1"))]]],
    ["an empty name", [[SNI, serverNames(Buffer.alloc(0))]]],
    ["bytes beyond ASCII", [[SNI, serverNames(Buffer.from("bücher.test"))]]],
    ["a list longer than its extension", [[SNI, Buffer.from([0, 50, 0, 0, 1, 97])]]],
    ["another kind of name", [[SNI, Buffer.from([0, 4, 7, 0, 1, 97])]]],
  ] as [string, [number, Buffer][]][])("with %s names no host", (_, extensions) => {
    const glimpse = glimpseServerName(handMade(extensions));
    // Bytes beyond ASCII on the wire are Latin-1, and never IDN.
    if (glimpse.is === "name") expect(glimpse.name).not.toContain("xn--bcher-kva");
    else expect(glimpse).toEqual(none);
  });

  test.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n")],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 3, 1])],
    ["an alert", Buffer.from([21, 3, 1, 0, 2, 1, 0])],
    ["a ServerHello", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["too large a record", Buffer.from([22, 3, 1, 0xff, 0xff])],
  ])("is ruled out for %s at the first bytes that show it", (_, bytes) => {
    expect(glimpseServerName(bytes)).toEqual(none);
    expect(byteByByte(glimpseServerName, bytes)).toEqual(none);
  });

  test("with any bytes in it is read without an exception", async () => {
    const hello = await clientHello("example.com");
    fc.assert(
      fc.property(
        fc.nat({ max: hello.length - 1 }),
        fc.nat({ max: 255 }),
        fc.nat({ max: hello.length }),
        (at, to, cut) => {
          const changed = Buffer.from(hello);
          changed[at] = to;
          expect(["more", "name", "none"]).toContain(glimpseServerName(changed.subarray(0, cut)).is);
        },
      ),
      { numRuns: 500 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void glimpseServerName(Buffer.from(bytes))));
  });
});

describe("a request", () => {
  const head = (...lines: string[]) => Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");

  test.each([
    ["origin form", head("GET /a?b HTTP/1.1", "Host: example.com")],
    ["HTTP/1.0", head("GET / HTTP/1.0", "host:example.com")],
    ["upper case, a port, spaces, a dot", head("POST / HTTP/1.1", "A: b", "HOST:   Example.COM.:8080  ", "C: d")],
    ["absolute form", head("GET http://example.com/x HTTP/1.1", "Host: example.com")],
    ["absolute form with a port", head("GET http://EXAMPLE.com:80 HTTP/1.1", "Host: example.com")],
    ["asterisk form", head("OPTIONS * HTTP/1.1", "Host: example.com")],
    [
      "with a body behind it",
      Buffer.concat([head("PUT / HTTP/1.1", "Host: example.com"), Buffer.from("Host: evil.test")]),
    ],
  ])("in %s has one host", (_, bytes) => {
    expect(glimpseHost(bytes)).toEqual(name("example.com"));
    expect(byteByByte(glimpseHost, bytes)).toEqual(name("example.com"));
  });

  test.each([
    ["no Host", head("GET / HTTP/1.1", "A: b")],
    ["Host twice", head("GET / HTTP/1.1", "Host: example.com", "Host: evil.test")],
    ["Host twice, the same", head("GET / HTTP/1.1", "Host: example.com", "Host: example.com")],
    ["two in one", head("GET / HTTP/1.1", "Host: example.com, evil.test")],
    ["a folded line", head("GET / HTTP/1.1", "Host: example.com", " .evil.test")],
    ["a space before the colon", head("GET / HTTP/1.1", "Host : example.com")],
    ["a bare CR", head("GET / HTTP/1.1", "A: b\rHost: evil.test", "Host: example.com")],
    ["a bare LF", head("GET / HTTP/1.1", "A: b\nHost: evil.test", "Host: example.com")],
    ["NUL", head("GET / HTTP/1.1", "Host: example.com\0.evil.test")],
    ["an address", head("GET / HTTP/1.1", "Host: 127.0.0.1")],
    ["an IPv6 address", head("GET / HTTP/1.1", "Host: [::1]")],
    ["CONNECT", head("CONNECT example.com:80 HTTP/1.1", "Host: example.com")],
    ["another host in the target", head("GET http://evil.test/ HTTP/1.1", "Host: example.com")],
    ["a user in the target", head("GET http://example.com@evil.test/ HTTP/1.1", "Host: example.com")],
    ["https in the target", head("GET https://example.com/ HTTP/1.1", "Host: example.com")],
    ["HTTP/2", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
    ["no version", head("GET /", "Host: example.com")],
    ["two spaces", head("GET  / HTTP/1.1", "Host: example.com")],
  ])("with %s names no host", (_, bytes) => {
    expect(glimpseHost(bytes)).toEqual(none);
    expect(byteByByte(glimpseHost, bytes)).toEqual(none);
  });

  test("with a line of white space up to a bare line break costs no more time than its bytes", () => {
    const bytes = head("GET / HTTP/1.1", `A:${" ".repeat(31_000)}\nb`, "Host: example.com");
    const before = process.cpuUsage();
    for (let times = 0; times < 3; times += 1) expect(glimpseHost(bytes)).toEqual(none);
    // A pattern that tries every end of the white space takes a second for each, in which no sandbox has a network.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1);
  });

  test.each(["\x16\x03\x01\x00", "SSH-2.0-x\r\n", "hello\r\n", "{}", "A".repeat(40)])(
    "is ruled out for %j without waiting for more",
    (text) => expect(glimpseHost(Buffer.from(text, "latin1"))).toEqual(none),
  );
});
