/** A forwarded request and its answer: every byte of head, body and trailers arrives as it was sent, in both directions. */

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { fetch } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import { INTERPRETER_PORT } from "../../../../shared/proxy/hop-contract.ts";
import { listening } from "../../../support/peers/listening.ts";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { answering, saying } from "./answering.ts";
import { httpBackend, routed, routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

describe.each(WAYS)("a request forwarded $route", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  test("arrives as it was sent, without the platform's headers", async () => {
    const backend = await saying(door.route.address, "HTTP/1.1 204 No Content\r\n\r\n");
    const secrets = `Svc-Node-Token: forged\r\nSvc-Execution-Id: forged\r\nSvc-Upstream-Tls: x\r\nE2b-Traffic-Access-Token: t\r\nX-Access-Token: ${door.route.envdAccessToken}\r\n`;
    await ask(
      door.port,
      `GET /a%2Fb/../c?d=%20&e HTTP/1.1\r\n${routing(door.route, backend.port)}${secrets}x-MiXed: \u00fc\r\nX-Access-Token: the user's own\r\nCookie: a=b\r\nConnection: close\r\n\r\n`,
    );
    expect(backend.requests).toEqual([
      "GET /a%2Fb/../c?d=%20&e HTTP/1.1\r\nHost: 127.0.0.1\r\nx-MiXed: \u00fc\r\nX-Access-Token: the user's own\r\nCookie: a=b\r\nConnection: keep-alive\r\n\r\n",
    ]);
  });

  test("has envd's token on the port of the code interpreter, which asks envd with it", async () => {
    const seen: (string | string[] | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers["x-access-token"], request.headers["e2b-traffic-access-token"]);
      response.end();
    });
    server.listen(INTERPRETER_PORT, door.route.address);
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const tokens = { "x-access-token": door.route.envdAccessToken, "e2b-traffic-access-token": "t" };
    await fetch(`http://127.0.0.1:${door.port}/execute`, {
      headers: { ...routed(door.route, INTERPRETER_PORT), ...tokens },
    });
    expect(seen).toEqual([door.route.envdAccessToken, undefined]);
  });

  test("has its body also when the server starts to listen only while the port is dialled again", async () => {
    const port = 40_999;
    const ask = (body: string) =>
      fetch(`http://127.0.0.1:${door.port}/`, { method: "POST", body, headers: routed(door.route, port) });
    const late = async () => {
      // Several at once: for some of them the whole body is there before the first refusal.
      const asked = Promise.all(["a", "b".repeat(100_000), "c"].map(ask));
      const server = createServer((request, response) => void request.pipe(response));
      await new Promise((resolve) => setTimeout(resolve, 250));
      await listening(server, door.route.address, port);
      const answers = await Promise.all((await asked).map((answer) => answer.text()));
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      return answers.map((text) => `${text.slice(0, 1)}${text.length}`);
    };
    // On a busy machine the moment may last longer than the port is dialled again.
    await expect.poll(late).toEqual(["a1", "b100000", "c1"]);
  });

  test("is answered with the server's body, in new framing", async () => {
    const backend = await saying(
      door.route.address,
      "HTTP/1.1 299 Odd Reason\r\nX-A: 1\r\nSet-Cookie: a=\u00fc\r\nset-cookie: b=2\r\nDate: today\r\nKeep-Alive: timeout=9\r\nSvc-Proxy-Error: closed\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 5\r\n\r\nhello",
    );
    const answer = await ask(
      door.port,
      `GET / HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: close\r\n\r\n`,
    );
    const kept = sameHost ? "Svc-Proxy-Error: closed\r\n" : "";
    expect(answer).toBe(
      `HTTP/1.1 299 Odd Reason\r\nX-A: 1\r\nSet-Cookie: a=\u00fc\r\nset-cookie: b=2\r\nDate: today\r\n${kept}Content-Length: 5\r\nConnection: close\r\n\r\nhello`,
    );
  });

  test.each([
    ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", /Content-Length: 5\r\n(.*\r\n)*\r\n$/],
    ["HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", /^HTTP\/1.1 200 OK\r\n(.*\r\n)*\r\n$/],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\n", /^HTTP\/1.1 204 No Content\r\n(.*\r\n)*\r\n$/],
    ["GET", "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", /^HTTP\/1.1 304 Not Modified\r\nETag: x\r\n(.*\r\n)*\r\n$/],
    ["GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", /Content-Length: 0\r\n(.*\r\n)*\r\n$/],
  ])("%s answered %j has no body", async (method, answer, expected) => {
    const backend = await saying(door.route.address, answer);
    const text = `${method} / HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: close\r\n\r\n`;
    expect(await ask(door.port, text)).toMatch(expected);
  });

  test("may be answered in chunks with trailers", async () => {
    const backend = await saying(
      door.route.address,
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\nX-Sum: 6\r\nSet-Cookie: forged=1\r\nSvc_Proxy_Error: closed\r\nE2b-Sandbox-Id: x\r\n\r\n",
    );
    const answer = await ask(
      door.port,
      `GET / HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/Trailer: X-Sum\r\n/);
    expect(answer).toMatch(/3\r\nabc\r\n3\r\ndef\r\n0\r\nX-Sum: 6\r\n\r\n$/);
  });

  test("may be answered by HTTP/1.0 servers, whose body ends with the connection", async () => {
    const backend = await answering(door.route.address, (socket) =>
      socket.once("data", () => socket.end("HTTP/1.0 200 OK\r\n\r\nall of it")),
    );
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, backend.port) });
    expect([response.status, await response.text()]).toEqual([200, "all of it"]);
  });

  test("carries a body of either framing, and its trailers", async () => {
    const seen: { body: string; trailers: NodeJS.Dict<string>; framing: (string | undefined)[] }[] = [];
    const backend = await httpBackend(door.route.address, (request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        seen.push({
          body,
          trailers: request.trailers,
          framing: [request.headers["content-length"], request.headers["transfer-encoding"]],
        });
        response.end("ok");
      });
    });
    onTestFinished(() => backend.close());
    const head = `POST / HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: close\r\n`;
    await ask(door.port, `${head}Content-Length: 5\r\n\r\nhello`);
    // The proxies do not forward trailers with names that route or authenticate: servers may merge trailers into headers.
    const kept = ["E2b-Sandbox-Id", "e2b_sandbox_port", "Svc-Node-Token", "X-Access-Token", "E2b-Traffic-Access-Token"]
      .map((name) => `${name}: x\r\n`)
      .join("");
    await ask(
      door.port,
      `${head}Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n${kept}x-sum: 5\r\n\r\n`,
    );
    expect(seen).toEqual([
      { body: "hello", trailers: {}, framing: ["5", undefined] },
      { body: "abcde", trailers: { "x-sum": "5" }, framing: [undefined, "chunked"] },
    ]);
  });

  test("carries a hundred megabytes both ways unharmed", async () => {
    const backend = await httpBackend(door.route.address, (request, response) => void request.pipe(response));
    onTestFinished(() => backend.close());
    const bytes = randomBytes(100 << 20);
    const response = await fetch(`http://127.0.0.1:${door.port}/`, {
      method: "POST",
      headers: routed(door.route, backend.port),
      body: bytes,
    });
    const hash = createHash("sha256");
    for await (const chunk of response.body ?? []) hash.update(chunk as Uint8Array);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
  }, 180_000);

  test("streams in both directions at once, and each piece arrives without delay", async () => {
    const backend = await httpBackend(door.route.address, (request, response) => {
      response.flushHeaders();
      request.on("data", (chunk: Buffer) => response.write(`got ${chunk.toString()}`));
      request.on("end", () => response.end());
    });
    onTestFinished(() => backend.close());
    const client = await RawClient.open(door.port);
    client.send(`POST / HTTP/1.1\r\n${routing(door.route, backend.port)}Transfer-Encoding: chunked\r\n\r\n`);
    await client.until((text) => text.includes("\r\n\r\n"));
    for (const word of ["one", "two", "three"]) {
      client.send(`${word.length.toString(16)}\r\n${word}\r\n`);
      await client.until((text) => text.includes(`got ${word}`));
    }
    expect(await client.send("0\r\n\r\n").until((text) => text.endsWith("0\r\n\r\n"))).toMatch(/0\r\n\r\n$/);
    client.destroy();
  });

  test("is sent without its body until the server answers 100, when the client waits for that", async () => {
    const backend = await answering(door.route.address, (socket, requests) => {
      let text = "";
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.endsWith("\r\n\r\n")) socket.write("HTTP/1.1 100 Continue\r\n\r\n");
        if (text.endsWith("hello")) {
          requests.push(text);
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
      });
    });
    const client = await RawClient.open(door.port);
    client.send(
      `PUT / HTTP/1.1\r\n${routing(door.route, backend.port)}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
    );
    expect(await client.until((text) => text.includes("\r\n\r\n"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(await client.send("hello").until((text) => text.endsWith("ok"))).toMatch(/200 OK/);
    expect(backend.requests[0]).toMatch(/Expect: 100-continue/);
    client.destroy();
  });

  test("is refused before its body when the server refuses it", async () => {
    const backend = await saying(door.route.address, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    const text = `PUT / HTTP/1.1\r\n${routing(door.route, backend.port)}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`;
    const answer = await ask(door.port, text);
    expect(answer).toMatch(/^HTTP\/1.1 413 Too Large\r\n/);
    expect(answer).toMatch(/Connection: close/);
  });

  test("sends its body after a time limit when the server does not know Expect", async () => {
    const backend = await httpBackend(door.route.address, () => undefined);
    onTestFinished(() => backend.close());
    backend.server.removeAllListeners("checkContinue");
    backend.server.on("checkContinue", (request, response) => {
      request.resume();
      request.on("end", () => response.end("taken"));
    });
    const client = await RawClient.open(door.port);
    client.send(
      `PUT / HTTP/1.1\r\n${routing(door.route, backend.port)}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
    );
    await client.until((text) => text.includes("100 Continue"));
    expect(await client.send("hello").until((text) => text.endsWith("taken"))).toMatch(/200 OK/);
    client.destroy();
  });

  test("may be preceded by early hints", async () => {
    const backend = await saying(
      door.route.address,
      "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    );
    const answer = await ask(
      door.port,
      `GET / HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 103 Early Hints\r\nLink: <\/a.css>; rel=preload\r\n\r\nHTTP\/1.1 204/i);
  });

  test("in absolute form goes to the host of its request line", async () => {
    const backend = await saying(door.route.address, "HTTP/1.1 204 No Content\r\n\r\n");
    const host = `${backend.port}-${door.route.sandboxId}.localhost`;
    await ask(door.port, `GET http://${host}/x?y HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n`);
    expect(backend.requests[0]).toBe(`GET /x?y HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n\r\n`);
  });

  test("passes compressed bytes untouched", async () => {
    const bytes = randomBytes(1000);
    const backend = await httpBackend(door.route.address, (request, response) => {
      response.setHeader("content-encoding", "gzip");
      response.setHeader("x-accept", request.headers["accept-encoding"] ?? "");
      response.end(bytes);
    });
    onTestFinished(() => backend.close());
    const request = httpRequest(`http://127.0.0.1:${door.port}/`, {
      headers: { ...routed(door.route, backend.port), "accept-encoding": "gzip, br" },
    });
    request.end();
    const [response] = (await once(request, "response")) as [import("node:http").IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    expect(response.headers).toMatchObject({ "content-encoding": "gzip", "x-accept": "gzip, br" });
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  });
});
