/** Requests as people type them and as broken clients send them: refused at once, with what is wrong in words. */

import { describe, expect, test } from "vitest";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { answering, saying } from "./answering.ts";
import { routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

/** What is wrong, a change of a whole request, the words. */
const CASES: readonly (readonly [string, (request: string) => string, string])[] = [
  ["line feeds alone", (text) => text.replaceAll("\r\n", "\n"), "a line of it does not end with CR LF"],
  [
    "line feeds alone behind its first line",
    (text) => text.replaceAll("\r\n", "\n").replace("\n", "\r\n"),
    "a line of it does not end with CR LF",
  ],
  ["letters beyond ASCII in its target", (text) => text.replace("/", "/\xc3\xbc"), "must be percent-encoded"],
  ["a blank in its target", (text) => text.replace("/", "/a b"), "with one space between them"],
  ["no slash before its target", (text) => text.replace("/", "a"), "its target is not a path"],
  ["a folded header", (text) => text.replace(/\r\n$/, "X-A: b\r\n c\r\n\r\n"), "goes on in a second line"],
  ["a blank before a colon", (text) => text.replace(/\r\n$/, "X-A : b\r\n\r\n"), "a header has no valid name"],
  ["the same length twice", (text) => withLengths(text, "2", "2"), "more than one Content-Length"],
  ["a length that is no number", (text) => withLengths(text, "2k"), "its Content-Length is not a number"],
  [
    "a length beside chunks",
    (text) => text.replace(/\r\n$/, "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n"),
    "stands beside Transfer-Encoding",
  ],
];

const withLengths = (text: string, ...lengths: readonly string[]) =>
  text.replace(/\r\n$/, `${lengths.map((length) => `Content-Length: ${length}\r\n`).join("")}\r\nhi`);

describe.each(WAYS)("a request $route", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  test.each(CASES)("with %s is refused in words", async (_name, changed, words) => {
    const backend = await saying(door.route.address, "HTTP/1.1 204 No Content\r\n\r\n");
    const answer = await ask(door.port, changed(`POST / HTTP/1.1\r\n${routing(door.route, backend.port)}\r\n`));
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*\r\n\r\nMalformed request: /);
    expect(answer).toContain(words);
    expect(answer).not.toContain("HPE_");
    expect(backend.requests).toEqual([]);
  });

  const upload = (port: number) => `POST / HTTP/1.1\r\n${routing(door.route, port)}Transfer-Encoding: chunked\r\n\r\n`;

  test.each([
    ["a chunk without a size", "zz\r\n"],
    ["a blank behind the size of a chunk", "2 \r\nhi\r\n0\r\n\r\n"],
    ["a chunk that is longer than its size", "2\r\nhi!\r\n0\r\n\r\n"],
  ])("whose body breaks off with %s is refused at once, and the server sees its end", async (_name, rest) => {
    const ended: string[] = [];
    const backend = await answering(door.route.address, (socket, requests) => {
      socket.on("data", (chunk: Buffer) => requests.push(chunk.toString("latin1")));
      socket.on("error", () => undefined);
      socket.on("close", () => ended.push("closed"));
      socket.on("end", () => socket.end());
    });
    const client = await RawClient.open(door.port);
    client.send(`${upload(backend.port)}5\r\nfirst\r\n`);
    await expect.poll(() => backend.requests.join("")).toContain("first");
    expect(await client.send(rest).toEnd()).toMatch(
      /^HTTP\/1\.1 400 [^]*Malformed request: a chunk of its body has no valid size/,
    );
    await expect.poll(() => ended).toEqual(["closed"]);
    expect(backend.requests.join("")).not.toContain("0\r\n\r\n");
  });

  test("whose body breaks off behind the beginning of its answer ends with the answer cut", async () => {
    const backend = await answering(door.route.address, (socket) => {
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"));
      socket.on("error", () => undefined);
    });
    const client = await RawClient.open(door.port);
    await client.send(`${upload(backend.port)}5\r\nfirst\r\n`).until((text) => text.endsWith("hi\r\n"));
    expect(await client.send("zz\r\n").toEnd()).toMatch(/hi\r\n$/);
  });
});
