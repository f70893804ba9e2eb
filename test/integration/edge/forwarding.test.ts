import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import type { Socket } from "node:net";
import { Agent, fetch } from "undici";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { EdgeRoute } from "../../../orchestrator/edge/sandbox-lookup.ts";
import {
  ask,
  type Backend,
  ENVD_PORT,
  type FrontDoor,
  httpBackend,
  openFrontDoor,
  RawClient,
  rawBackend,
  routed,
  routing,
} from "./front-door.ts";

describe.each([
  { route: "straight to the container", sameHost: true },
  { route: "through the node's proxy", sameHost: false },
])("a request forwarded $route", ({ sameHost }) => {
  let door: FrontDoor;
  let route: EdgeRoute;
  beforeAll(async () => {
    door = await openFrontDoor({ sameHost });
    route = door.add();
  });
  afterAll(() => door.stop());

  async function answering(
    onConnection: (socket: Socket, requests: string[]) => void,
  ): Promise<Backend & { requests: string[] }> {
    const requests: string[] = [];
    const backend = await rawBackend(route.address, (socket) => onConnection(socket, requests));
    onTestFinished(() => backend.close());
    return { ...backend, requests };
  }

  /** Answers each whole head with the same bytes. */
  const saying = (answer: string) =>
    answering((socket, requests) => {
      let text = "";
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
        for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
          requests.push(text.slice(0, end + 4));
          text = text.slice(end + 4);
          socket.write(answer, "latin1");
        }
      });
    });

  test("arrives as it was sent, without the platform's headers", async () => {
    const backend = await saying("HTTP/1.1 204 No Content\r\n\r\n");
    const secrets = `Svc-Node-Token: forged\r\nSvc-Execution-Id: forged\r\nSvc-Upstream-Tls: x\r\nE2b-Traffic-Access-Token: t\r\nX-Access-Token: ${route.envdAccessToken}\r\n`;
    await ask(
      door.port,
      `GET /a%2Fb/../c?d=%20&e HTTP/1.1\r\n${routing(route, backend.port)}${secrets}x-MiXed: \u00fc\r\nX-Access-Token: the user's own\r\nCookie: a=b\r\nConnection: close\r\n\r\n`,
    );
    expect(backend.requests).toEqual([
      "GET /a%2Fb/../c?d=%20&e HTTP/1.1\r\nHost: 127.0.0.1\r\nx-MiXed: \u00fc\r\nX-Access-Token: the user's own\r\nCookie: a=b\r\nConnection: keep-alive\r\n\r\n",
    ]);
  });

  test("is answered with the server's body, in new framing", async () => {
    const backend = await saying(
      "HTTP/1.1 299 Odd Reason\r\nX-A: 1\r\nSet-Cookie: a=\u00fc\r\nset-cookie: b=2\r\nDate: today\r\nKeep-Alive: timeout=9\r\nSvc-Proxy-Error: closed\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 5\r\n\r\nhello",
    );
    const answer = await ask(door.port, `GET / HTTP/1.1\r\n${routing(route, backend.port)}Connection: close\r\n\r\n`);
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
    const backend = await saying(answer);
    const text = `${method} / HTTP/1.1\r\n${routing(route, backend.port)}Connection: close\r\n\r\n`;
    expect(await ask(door.port, text)).toMatch(expected);
  });

  test("may be answered in chunks with trailers", async () => {
    const backend = await saying(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\nX-Sum: 6\r\nSet-Cookie: forged=1\r\nSvc_Proxy_Error: closed\r\nE2b-Sandbox-Id: x\r\n\r\n",
    );
    const answer = await ask(door.port, `GET / HTTP/1.1\r\n${routing(route, backend.port)}Connection: close\r\n\r\n`);
    expect(answer).toMatch(/Trailer: X-Sum\r\n/);
    expect(answer).toMatch(/3\r\nabc\r\n3\r\ndef\r\n0\r\nX-Sum: 6\r\n\r\n$/);
  });

  test("may be answered by HTTP/1.0 servers, whose body ends with the connection", async () => {
    const backend = await answering((socket) =>
      socket.once("data", () => socket.end("HTTP/1.0 200 OK\r\n\r\nall of it")),
    );
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
    expect([response.status, await response.text()]).toEqual([200, "all of it"]);
  });

  test("carries a body of either framing, and its trailers", async () => {
    const seen: { body: string; trailers: NodeJS.Dict<string>; framing: (string | undefined)[] }[] = [];
    const backend = await httpBackend(route.address, (request, response) => {
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
    const head = `POST / HTTP/1.1\r\n${routing(route, backend.port)}Connection: close\r\n`;
    await ask(door.port, `${head}Content-Length: 5\r\n\r\nhello`);
    // What routes or authenticates says so in the head or not at all: servers may merge trailers into headers.
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
    const backend = await httpBackend(route.address, (request, response) => void request.pipe(response));
    onTestFinished(() => backend.close());
    const bytes = randomBytes(100 << 20);
    const response = await fetch(`http://127.0.0.1:${door.port}/`, {
      method: "POST",
      headers: routed(route, backend.port),
      body: bytes,
    });
    const hash = createHash("sha256");
    for await (const chunk of response.body ?? []) hash.update(chunk as Uint8Array);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
  }, 60_000);

  test("streams both ways at once, without waiting for more", async () => {
    const backend = await httpBackend(route.address, (request, response) => {
      response.flushHeaders();
      request.on("data", (chunk: Buffer) => response.write(`got ${chunk.toString()}`));
      request.on("end", () => response.end());
    });
    onTestFinished(() => backend.close());
    const client = await RawClient.open(door.port);
    client.send(`POST / HTTP/1.1\r\n${routing(route, backend.port)}Transfer-Encoding: chunked\r\n\r\n`);
    await client.until((text) => text.includes("\r\n\r\n"));
    for (const word of ["one", "two", "three"]) {
      client.send(`${word.length.toString(16)}\r\n${word}\r\n`);
      await client.until((text) => text.includes(`got ${word}`));
    }
    expect(await client.send("0\r\n\r\n").until((text) => text.endsWith("0\r\n\r\n"))).toMatch(/0\r\n\r\n$/);
    client.destroy();
  });

  test("waits for 100 when the client does", async () => {
    const backend = await answering((socket, requests) => {
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
    client.send(`PUT / HTTP/1.1\r\n${routing(route, backend.port)}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`);
    expect(await client.until((text) => text.includes("\r\n\r\n"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(await client.send("hello").until((text) => text.endsWith("ok"))).toMatch(/200 OK/);
    expect(backend.requests[0]).toMatch(/Expect: 100-continue/);
    client.destroy();
  });

  test("is refused before its body when the server refuses it", async () => {
    const backend = await saying("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    const text = `PUT / HTTP/1.1\r\n${routing(route, backend.port)}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`;
    const answer = await ask(door.port, text);
    expect(answer).toMatch(/^HTTP\/1.1 413 Too Large\r\n/);
    expect(answer).toMatch(/Connection: close/);
  });

  test("that is answered before its body is through leaves the connection fit for the next", async () => {
    const answers: (() => void)[] = [];
    const backend = await answering((socket) => {
      socket.once("data", () => {
        socket.pause();
        answers.push(() => socket.write("HTTP/1.1 507 Full\r\nContent-Length: 4\r\n\r\nfull"));
      });
    });
    const client = await RawClient.open(door.port);
    const bytes = 64 << 20;
    client.send(
      `PUT / HTTP/1.1\r\n${routing(route, backend.port)}Content-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`,
    );
    // Until nothing moves any more: every buffer on the way is full.
    let before = -1;
    await expect
      .poll(
        () => {
          const still = before === client.socket.writableLength && answers.length === 1;
          before = client.socket.writableLength;
          return still && before > 0;
        },
        { interval: 200 },
      )
      .toBe(true);
    answers[0]?.();
    await client.until((text) => text.endsWith("full"));
    client.send(`GET / HTTP/1.1\r\n${routing(route, backend.port)}Connection: close\r\n\r\n`);
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.();
    expect((await client.toEnd()).split("full").length).toBe(3);
  });

  test("that is answered without having been read does not hold up the next, for the clients we know", async () => {
    const envd = door.add();
    // Some servers are like this: reads a piece, answers, and never looks at what is still in the sockets.
    const backend = await rawBackend(
      envd.address,
      (socket) => {
        socket.on("data", (chunk: Buffer) => {
          if (!chunk.toString("latin1").startsWith("POST /large")) {
            if (chunk.includes("small")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            return;
          }
          socket.pause();
          // By then everything has been handed over, hop by hop.
          setTimeout(() => socket.write("HTTP/1.1 507 Full\r\nContent-Length: 4\r\n\r\nfull"), 300);
        });
      },
      ENVD_PORT,
    );
    onTestFinished(() => backend.close());
    const dispatcher = new Agent({ connections: 1 });
    onTestFinished(() => dispatcher.destroy());
    const post = async (path: string, body: string | Uint8Array<ArrayBuffer>) => {
      const response = await fetch(`http://127.0.0.1:${door.port}${path}`, {
        method: "POST",
        headers: routed(envd, ENVD_PORT),
        body,
        dispatcher,
        signal: AbortSignal.timeout(3_000),
      });
      return `${response.status} ${await response.text()}`;
    };
    const answers: string[] = [];
    for (let round = 0; round < 3; round++) {
      answers.push(
        await post("/large", new Uint8Array(512 * 1024)),
        await post("/", "small"),
        await post("/", "small"),
      );
    }
    expect(answers).toEqual(Array.from({ length: 3 }, () => ["507 full", "200 ok", "200 ok"]).flat());
    // One that held an unread body carries nothing else; the others are kept.
    expect(backend.accepted()).toBe(4);
  });

  test("does not wait for ever for a server that does not know Expect", async () => {
    const backend = await httpBackend(route.address, () => undefined);
    onTestFinished(() => backend.close());
    backend.server.removeAllListeners("checkContinue");
    backend.server.on("checkContinue", (request, response) => {
      request.resume();
      request.on("end", () => response.end("taken"));
    });
    const client = await RawClient.open(door.port);
    client.send(`PUT / HTTP/1.1\r\n${routing(route, backend.port)}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`);
    await client.until((text) => text.includes("100 Continue"));
    expect(await client.send("hello").until((text) => text.endsWith("taken"))).toMatch(/200 OK/);
    client.destroy();
  });

  test("may be preceded by early hints", async () => {
    const backend = await saying(
      "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    );
    const answer = await ask(door.port, `GET / HTTP/1.1\r\n${routing(route, backend.port)}Connection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 103 Early Hints\r\nLink: <\/a.css>; rel=preload\r\n\r\nHTTP\/1.1 204/i);
  });

  test("reuses connections only for requests that may be repeated", async () => {
    const backend = await saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    const get = `GET / HTTP/1.1\r\n${routing(route, backend.port)}\r\n`;
    const client = await RawClient.open(door.port);
    for (let count = 1; count <= 5; count++) {
      await client.send(get).until((text) => text.split("ok").length > count);
    }
    expect(backend.accepted()).toBe(1);
    const post = `POST / HTTP/1.1\r\n${routing(route, backend.port)}Content-Length: 0\r\n\r\n`;
    await client.send(post).until((text) => text.split("ok").length > 6);
    expect(backend.accepted()).toBe(2);
    client.destroy();
  });

  test("is sent again when the kept connection turns out to be dead", async () => {
    let count = 0;
    const backend = await answering((socket) => {
      socket.on("data", () => {
        // Every second request on a connection finds it closed.
        if (++count % 2 === 0) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    });
    for (let round = 0; round < 4; round++) {
      const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, backend.port) });
      expect([response.status, await response.text()]).toEqual([200, "ok"]);
    }
  });

  test("to a server that answers wrongly gets an answer with the reason", async () => {
    const backend = await saying("HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n");
    const dead = await answering((socket) => socket.on("data", () => socket.destroy()));
    const odd = await saying("SSH-2.0-x\r\n\r\n");
    const unasked = await saying("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
    for (const { port } of [backend, dead, odd, unasked]) {
      const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, port) });
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({ sandboxId: route.sandboxId, port, code: 502 });
    }
  });

  test("whose answer is cut off is cut off too, never finished", async () => {
    const backend = await answering((socket) =>
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        socket.once("drain", () => undefined);
        setImmediate(() => socket.destroySoon());
      }),
    );
    const answer = await ask(door.port, `GET / HTTP/1.1\r\n${routing(route, backend.port)}\r\n`);
    expect(answer).toMatch(/abc\r\n$/);
  });

  test("whose client leaves is ended at the server", async () => {
    const left: string[] = [];
    const backend = await httpBackend(route.address, (request, response) => {
      response.write("begun");
      response.on("close", () => left.push(request.method ?? ""));
    });
    onTestFinished(() => backend.close());
    for (const text of [
      `GET / HTTP/1.1\r\n${routing(route, backend.port)}\r\n`,
      `POST / HTTP/1.1\r\n${routing(route, backend.port)}Content-Length: 10\r\n\r\nabc`,
    ]) {
      const client = await RawClient.open(door.port);
      await client.send(text).until((received) => received.includes("begun"));
      client.destroy();
    }
    await expect.poll(() => left.toSorted()).toEqual(["GET", "POST"]);
  });

  test("is one of several sent at once on a connection, answered in order", async () => {
    const backend = await httpBackend(route.address, (request, response) => {
      setTimeout(() => response.end(`[${request.url}]`), request.url === "/1" ? 50 : 0);
    });
    onTestFinished(() => backend.close());
    const one = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${routing(route, backend.port)}${more}\r\n`;
    const answer = await ask(door.port, one("/1") + one("/2") + one("/3", "Connection: close\r\n"));
    expect(answer.match(/\[\/\d\]/g)).toEqual(["[/1]", "[/2]", "[/3]"]);
    const client = await RawClient.open(door.port);
    client.send(one("/1"));
    await new Promise((resolve) => setImmediate(resolve));
    client.send(one("/2", "Connection: close\r\n"));
    expect((await client.toEnd()).match(/\[\/\d\]/g)).toEqual(["[/1]", "[/2]"]);
  });

  test("in absolute form goes where its target says", async () => {
    const backend = await saying("HTTP/1.1 204 No Content\r\n\r\n");
    const host = `${backend.port}-${route.sandboxId}.localhost`;
    await ask(door.port, `GET http://${host}/x?y HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n`);
    expect(backend.requests[0]).toBe(`GET /x?y HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n\r\n`);
  });

  test("reaches a server a moment after it has started", async () => {
    const parked = await rawBackend(route.address, () => undefined);
    const { port } = parked;
    await parked.close();
    const answer = fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, port) });
    await new Promise((resolve) => setTimeout(resolve, 150));
    const backend = await httpBackend(route.address, (_request, response) => response.end("here"), port);
    onTestFinished(() => backend.close());
    expect(await (await answer).text()).toBe("here");
  });

  test("to a port where nothing listens is answered after some tries, not held", async () => {
    const parked = await rawBackend(route.address, () => undefined);
    await parked.close();
    const started = performance.now();
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(route, parked.port) });
    expect(response.status).toBe(502);
    expect(await response.json()).toEqual({
      sandboxId: route.sandboxId,
      message: "The sandbox is running but port is not open",
      port: parked.port,
      code: 502,
    });
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  test("passes compressed bytes untouched", async () => {
    const bytes = randomBytes(1000);
    const backend = await httpBackend(route.address, (request, response) => {
      response.setHeader("content-encoding", "gzip");
      response.setHeader("x-accept", request.headers["accept-encoding"] ?? "");
      response.end(bytes);
    });
    onTestFinished(() => backend.close());
    const request = httpRequest(`http://127.0.0.1:${door.port}/`, {
      headers: { ...routed(route, backend.port), "accept-encoding": "gzip, br" },
    });
    request.end();
    const [response] = (await once(request, "response")) as [import("node:http").IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    expect(response.headers).toMatchObject({ "content-encoding": "gzip", "x-accept": "gzip, br" });
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  });
});
