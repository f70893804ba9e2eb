/** Answers of servers in sandboxes as the world has them: what curl and browsers read arrives, the rest is refused in words. */

import type { Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { answering, saying } from "./answering.ts";
import { rawBackend, routed, routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

/** Name, bytes of the server (which then ends), status and body that a client gets, a pattern for the head. */
const READ: readonly (readonly [string, string, string, RegExp])[] = [
  ["line feeds alone", "HTTP/1.1 200 OK\n\nhi", "200 hi", /OK/],
  ["line feeds alone, with a length", "HTTP/1.1 201 Made\nX-A: b\nContent-Length: 2\n\nhi", "201 hi", /\r\nX-A: b\r\n/],
  [
    "headers of CGI",
    "HTTP/1.0 200 Script output follows\r\nServer: x\r\nContent-Type: text/plain\n\nhi",
    "200 hi",
    /text\/plain/,
  ],
  [
    "extensions and blanks behind the sizes of chunks",
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c="d e"\r\nhi\r\n0  \r\n\r\n',
    "200 hi",
    /chunked/,
  ],
  ["an empty line before it", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 hi", /OK/],
  ["no reason phrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", "200 hi", /200/],
  ["nothing but a status line", "HTTP/1.0 200 OK\r\n\r\n", "200 ", /OK/],
  ["a folded header", "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nhi", "200 hi", /\r\nX-A: b c\r\n/],
  [
    "both framings",
    "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "200 hi",
    /chunked/,
  ],
  [
    "a control character in a header",
    "HTTP/1.1 200 OK\r\nX-A: b\x1b[1mc\r\nContent-Length: 2\r\n\r\nhi",
    "200 hi",
    /X-A: b \[1mc\r\n/,
  ],
  ["an unknown version", "HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 hi", /OK/],
  ["identity as its coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhi", "200 hi", /OK/],
  [
    "chunked said twice",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "200 hi",
    /\r\nTransfer-Encoding: chunked\r\n/,
  ],
  [
    "more bytes than its length",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi!",
    "200 hi",
    /OK/,
  ],
  ["a status that nobody knows", "HTTP/1.1 599 Mine\r\nContent-Length: 2\r\n\r\nhi", "599 hi", /Mine/],
];

const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ["nothing at all", "", /it closed the connection before it sent a whole answer/],
  ["half a head", "HTTP/1.1 200 OK\r\nX-A: b", /it closed the connection before it sent a whole answer/],
  ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n", /does not begin with HTTP\/1\.1/],
  ["TLS", "\x15\x03\x01\x00\x02\x02F", /it speaks TLS .*httpsPorts/],
  ["HTTP/2", "\0\0\x12\x04\0\0\0\0\0\0\x03", /it speaks HTTP\/2 without TLS/],
  [
    "two lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
    /more than one Content-Length/,
  ],
  [
    "the same length twice",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
    /more than one Content-Length/,
  ],
  [
    "a length below zero",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhi",
    /Content-Length of its answer is not a number/,
  ],
  ["a line without a colon", "HTTP/1.1 200 OK\r\nfoo\r\n\r\nhi", /a header of its answer has no valid name/],
  ["a NUL in a header", "HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\nhi", /the header X-A of its answer has a NUL byte/],
  ["a status of four digits", "HTTP/1.1 1000 x\r\n\r\nhi", /no status of three digits/],
  [
    "chunked before another coding",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nhi",
    /chunked is not the last coding/,
  ],
];

describe.each(WAYS)("an answer $route", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  const get = (port: number, more = "", version = "1.1") =>
    `GET / HTTP/${version}\r\n${routing(door.route, port)}Connection: close\r\n${more}\r\n`;

  async function ending(bytes: string): Promise<number> {
    const backend = await rawBackend(door.route.address, (socket) => {
      socket.once("data", () => socket.end(bytes, "latin1"));
      socket.resume();
    });
    onTestFinished(() => backend.close());
    return backend.port;
  }

  test.each(READ)("with %s arrives", async (_name, bytes, expected, head) => {
    const port = await ending(bytes);
    expect(await ask(door.port, get(port))).toMatch(head);
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, port) });
    expect(`${response.status} ${await response.text()}`).toBe(expected);
  });

  test.each(REFUSED)("with %s is refused in words", async (_name, bytes, reason) => {
    const port = await ending(bytes);
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, port) });
    const body = (await response.json()) as { readonly message: string };
    expect([response.status, body]).toMatchObject([502, { sandboxId: door.route.sandboxId, port, code: 502 }]);
    expect(body.message).toMatch(reason);
    expect(body.message).not.toMatch(/HPE_|ECONN/);
  });

  test("with another transfer coding keeps its name, and a client of HTTP/1.0 learns why it gets none", async () => {
    const port = await ending("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n");
    const answer = await ask(door.port, get(port));
    expect(answer).toContain("\r\nTransfer-Encoding: gzip, chunked\r\n");
    expect(answer).toMatch(/\r\n\r\n2\r\nzz\r\n0\r\n\r\n$/);
    expect(await ask(door.port, get(port, "", "1.0"))).toMatch(
      /^HTTP\/1\.1 502 [^]*transfer coding gzip, which HTTP\/1\.0/,
    );
    const unframed = await ending("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nzz");
    expect(await ask(door.port, get(unframed))).toContain("\r\nTransfer-Encoding: gzip, chunked\r\n");
  });

  test("426 keeps the protocols that the server asks for", async () => {
    const port = await ending(
      "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
    );
    expect(await ask(door.port, get(port))).toMatch(/\r\nUpgrade: websocket\r\n/);
    // A declined request to upgrade gets the same answer, and its connection ends.
    const asked = get(port).replace("Connection: close", "Connection: Upgrade\r\nUpgrade: other");
    expect(await ask(door.port, asked)).toMatch(
      /^HTTP\/1\.1 426 [^]*\r\nUpgrade: websocket\r\nConnection: close, Upgrade\r\n/,
    );
    // Elsewhere the header would offer a protocol that this proxy has not checked.
    const offering = await ending(
      "HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
    );
    expect(await ask(door.port, get(offering))).not.toContain("h2c");
  });

  const INFORMED =
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nLink: </b>; rel=preload\r\nX-Hint: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n" +
    "HTTP/1.1 104 Upload Resumption Supported\nUpload-Draft-Interop-Version: 6\n\nHTTP/1.1 102 Processing\r\n\r\n";
  const FORWARDED =
    "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nLink: </b>; rel=preload\r\nX-Hint: 1\r\n\r\n" +
    "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 6\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";

  test("comes behind its informational responses, whichever they are, and upgrades have them too", async () => {
    const port = await ending(`${INFORMED}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi`);
    const answer = await ask(door.port, get(port));
    expect(answer.slice(0, answer.indexOf("HTTP/1.1 200"))).toBe(FORWARDED);
    expect(await ask(door.port, get(port, "", "1.0"))).toMatch(/^HTTP\/1\.1 200 /);

    const upgrading = await answering(door.route.address, (socket: Socket) => {
      socket.once("data", () =>
        socket.write(`${INFORMED}HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nfirst`),
      );
      socket.on("end", () => socket.end());
    });
    const client = await RawClient.open(door.port);
    const asked = get(upgrading.port).replace("Connection: close", "Connection: Upgrade\r\nUpgrade: raw");
    const switched = await client.send(asked).until((text) => text.endsWith("first"));
    expect(switched.slice(0, switched.indexOf("HTTP/1.1 101"))).toBe(FORWARDED);
    client.destroy();
  });

  test("that never comes behind endless informational responses is given up, with the reason", async () => {
    const backend = await saying(door.route.address, "HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n".repeat(17));
    const answer = await ask(door.port, get(backend.port));
    expect(answer).toContain("it sent informational answers without end");
    expect(answer.split("103 Early Hints")).toHaveLength(17);
  });

  test.each([
    ["LIST", "501 Not Implemented", "The method LIST cannot be forwarded"],
    ["list", "501 Not Implemented", "The method list cannot be forwarded"],
    ["GETX", "501 Not Implemented", "The method GETX cannot be forwarded"],
    ["DESCRIBE", "501 Not Implemented", "The method DESCRIBE cannot be forwarded"],
    ["BREW", "501 Not Implemented", "The method BREW cannot be forwarded"],
  ])("to %s, which the parser does not know, names the method", async (method, status, message) => {
    const answer = await ask(door.port, get(1).replace("GET", method));
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status}\r\nAccess-Control-Allow-Origin: `));
    expect(answer).toContain(message);
    // Also behind an answered request of the same connection.
    const port = await ending("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    const client = await RawClient.open(door.port);
    await client.send(get(port).replace("Connection: close\r\n", "")).until((text) => text.endsWith("hi"));
    expect(await client.send(get(1).replace("GET", method)).toEnd()).toContain(message);
  });

  test("to CONNECT or to another version of HTTP says so", async () => {
    expect(await ask(door.port, `CONNECT a:1 HTTP/1.1\r\n${routing(door.route, 1)}\r\n`)).toMatch(
      /^HTTP\/1\.1 501 [^]*The method CONNECT cannot be forwarded/,
    );
    for (const line of ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"])
      expect(await ask(door.port, line)).toMatch(/^HTTP\/1\.1 505 [^]*speaks HTTP\/1\.1 only/);
    expect(await ask(door.port, "\x16\x03\x01\x02\x00\x01\x00")).toMatch(/^HTTP\/1\.1 400 /);
  });
});
