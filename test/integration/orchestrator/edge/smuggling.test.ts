import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { type Backend, ENVD_PORT, type FrontDoor, openFrontDoor, rawBackend, routing } from "./front-door.ts";

/**
 * The second request that each entry hides from one of two readers of the same bytes. `{R}` stands for the routing headers.
 */
const HIDDEN = "GET /init HTTP/1.1\r\nHost: x\r\n\r\n";
const corpus: readonly (readonly [string, string])[] = [
  [
    "both framings, length first",
    `POST /a HTTP/1.1\r\n{R}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  [
    "both framings, coding first",
    `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  ["two lengths", `POST /a HTTP/1.1\r\n{R}Content-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
  ["a list of lengths", `POST /a HTTP/1.1\r\n{R}Content-Length: 0, ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
  ["a signed length", `POST /a HTTP/1.1\r\n{R}Content-Length: +0\r\n\r\n${HIDDEN}`],
  ["a space before the colon", `POST /a HTTP/1.1\r\n{R}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
  [
    "a tab in the coding",
    `POST /a HTTP/1.1\r\n{R}Transfer-Encoding:\tchunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  ["an unknown coding", `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
  ["a coding in quotes", `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n${HIDDEN}`],
  [
    "two codings",
    `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  [
    "a folded header",
    `POST /a HTTP/1.1\r\n{R}X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  ],
  [
    "a bare carriage return",
    `POST /a HTTP/1.1\r\n{R}X: y\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n${HIDDEN}`,
  ],
  ["a chunk size with a sign", `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n${HIDDEN}`],
  [
    "a chunk that is longer than it says",
    `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n${HIDDEN}`,
  ],
  ["a chunk size with a bare line feed", `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n0\n\n${HIDDEN}`],
  ["a length on GET", `GET /a HTTP/1.1\r\n{R}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
  ["a coding on GET", `GET /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  [
    "a nominated length",
    `POST /a HTTP/1.1\r\n{R}Connection: content-length\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  ],
  [
    "a nominated coding",
    `POST /a HTTP/1.1\r\n{R}Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`,
  ],
  [
    "trailers that frame",
    `POST /a HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\nHost: y\r\n\r\n`,
  ],
  ["an upgrade that is not agreed to", `GET /a HTTP/1.1\r\n{R}Connection: Upgrade\r\nUpgrade: raw\r\n\r\n${HIDDEN}`],
  [
    "an upgrade with a length",
    `GET /a HTTP/1.1\r\n{R}Connection: Upgrade\r\nUpgrade: raw\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  ],
  ["HTTP/0.9", `GET /a\r\n${HIDDEN}`],
  ["a second host", `GET /a HTTP/1.1\r\n{R}Host: 49983-other.localhost\r\n\r\n`],
  ["a path with a space", `GET /init /a HTTP/1.1\r\n{R}\r\n`],
  ["a line break in the path", `GET /a%0d%0aX: y HTTP/1.1\r\n{R}\r\n`],
  ["CONNECT", `CONNECT 127.0.0.1:80 HTTP/1.1\r\n{R}\r\n${HIDDEN}`],
];

/** Reads the bytes as a strict server does: every request, with the body that its own framing gives it. */
function requestsIn(bytes: string): { line: string; body: string }[] {
  const found: { line: string; body: string }[] = [];
  let rest = bytes;
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return [...found, { line: `partial ${rest}`, body: "" }];
    const head = rest.slice(0, end);
    rest = rest.slice(end + 4);
    const length = /^content-length: (\d+)$/im.exec(head)?.[1];
    const chunked = /^transfer-encoding: chunked$/im.test(head);
    expect(length !== undefined && chunked).toBe(false);
    let body = "";
    if (length !== undefined) {
      body = rest.slice(0, Number(length));
      rest = rest.slice(Number(length));
    } else if (chunked) {
      for (;;) {
        const size = /^([0-9a-f]+)\r\n/.exec(rest);
        if (size === null) break;
        const bytesOfChunk = Number.parseInt(size[1] ?? "", 16);
        rest = rest.slice(size[0].length);
        if (bytesOfChunk === 0) {
          rest = rest.slice(rest.indexOf("\r\n") + 2);
          break;
        }
        body += rest.slice(0, bytesOfChunk);
        rest = rest.slice(bytesOfChunk + 2);
      }
    }
    found.push({ line: head.split("\r\n", 1)[0] ?? "", body });
  }
  return found;
}

describe.each([{ sameHost: true }, { sameHost: false }])("the same host: $sameHost,", ({ sameHost }) => {
  let door: FrontDoor;
  let route: EdgeRoute;
  let envd: Backend;
  const connections: { received: string }[] = [];
  beforeAll(async () => {
    door = await openFrontDoor({ sameHost });
    route = door.add();
    envd = await rawBackend(
      route.address,
      (socket) => {
        const connection = { received: "" };
        connections.push(connection);
        socket.on("data", (chunk: Buffer) => {
          connection.received += chunk.toString("latin1");
          if (chunk.includes("\r\n\r\n")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
      },
      ENVD_PORT,
    );
  });
  afterAll(async () => {
    await door.stop();
    await envd.close();
  });

  test.each(corpus)("%s hides nothing from us that a server then sees", async (_name, text) => {
    const client = await RawClient.open(door.port);
    client.send(text.replace("{R}", routing(route, ENVD_PORT)));
    // A plain request follows: if the connection is still there, its answer shows that everything before it is done.
    client.send(`GET /last HTTP/1.1\r\n${routing(route, ENVD_PORT)}Connection: close\r\n\r\n`);
    client.socket.setTimeout(1_500, () => client.destroy());
    await client.toEnd();
    client.destroy();
    for (const { received } of connections) {
      for (const { line } of requestsIn(received)) {
        expect(line).not.toMatch(/init|hidden/);
        expect(line).toMatch(/^(partial )?(GET|POST) \/(a|last)/);
      }
    }
  });

  test("a response split by the sandbox stays the answer to one request", async () => {
    const split = await rawBackend(route.address, (socket) => {
      socket.on("data", () =>
        socket.write(
          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
        ),
      );
    });
    const client = await RawClient.open(door.port);
    const get = `GET / HTTP/1.1\r\n${routing(route, split.port)}\r\n`;
    await client.send(get).until((text) => text.endsWith("ok"));
    await client.send(get).until((text) => text.split("ok").length > 2);
    expect(client.received).not.toContain("forged");
    client.destroy();
    await split.close();
  });

  test("an answer without a request reaches no visitor", async () => {
    const eager = await rawBackend(route.address, (socket) => {
      socket.on("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        setTimeout(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"), 20);
        socket.on("end", () => socket.end());
      });
    });
    const client = await RawClient.open(door.port);
    for (let count = 1; count <= 3; count++) {
      await client
        .send(`GET / HTTP/1.1\r\n${routing(route, eager.port)}\r\n`)
        .until((text) => text.split("ok").length > count);
      await expect.poll(() => eager.open()).toBe(0);
    }
    expect(client.received).not.toContain("forged");
    client.destroy();
    await eager.close();
  });
});
