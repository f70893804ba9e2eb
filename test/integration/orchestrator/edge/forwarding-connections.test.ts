/**
 * A forwarded request and the connections that carry it: how the proxy keeps, repeats and cuts them, and shares them with
 * requests before and after it.
 */

import { Agent, fetch } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import { ask, RawClient } from "../../../support/peers/raw-client.ts";
import { answering, saying } from "./answering.ts";
import { ENVD_PORT, httpBackend, rawBackend, routed, routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

describe.each(WAYS)("a request forwarded $route", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  test("that is answered before all of its body was sent leaves the connection usable for the next", async () => {
    const answers: (() => void)[] = [];
    const backend = await answering(door.route.address, (socket) => {
      socket.once("data", () => {
        socket.pause();
        answers.push(() => socket.write("HTTP/1.1 507 Full\r\nContent-Length: 4\r\n\r\nfull"));
      });
    });
    const client = await RawClient.open(door.port);
    const bytes = 64 << 20;
    client.send(
      `PUT / HTTP/1.1\r\n${routing(door.route, backend.port)}Content-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`,
    );
    // Waits until no byte moves any more, because every buffer on the way is full.
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
    client.send(`GET / HTTP/1.1\r\n${routing(door.route, backend.port)}Connection: close\r\n\r\n`);
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.();
    expect((await client.toEnd()).split("full").length).toBe(3);
  });

  test("whose body the server never reads does not hold up the next, with each known client", async () => {
    const envd = door.add();
    // Some servers behave like this one: it reads a piece, answers, and never looks at the rest in its sockets.
    const backend = await rawBackend(
      envd.address,
      (socket) => {
        socket.on("data", (chunk: Buffer) => {
          if (!chunk.toString("latin1").startsWith("POST /large")) {
            if (chunk.includes("small")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            return;
          }
          socket.pause();
          // By now each hop has forwarded everything that it can.
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
        signal: AbortSignal.timeout(20_000),
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
    // A connection with an unread body carries no other request; the proxy keeps the other connections.
    expect(backend.accepted()).toBe(4);
  });

  test("reuses connections only for requests that may be repeated", async () => {
    const backend = await saying(door.route.address, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    const get = `GET / HTTP/1.1\r\n${routing(door.route, backend.port)}\r\n`;
    const client = await RawClient.open(door.port);
    for (let count = 1; count <= 5; count++) {
      await client.send(get).until((text) => text.split("ok").length > count);
    }
    expect(backend.accepted()).toBe(1);
    const post = `POST / HTTP/1.1\r\n${routing(door.route, backend.port)}Content-Length: 0\r\n\r\n`;
    await client.send(post).until((text) => text.split("ok").length > 6);
    expect(backend.accepted()).toBe(2);
    client.destroy();
  });

  test("is sent again when the kept connection turns out to be dead", async () => {
    let count = 0;
    const backend = await answering(door.route.address, (socket) => {
      socket.on("data", () => {
        // The server closes a connection at its second request.
        if (++count % 2 === 0) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    });
    for (let round = 0; round < 4; round++) {
      const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, backend.port) });
      expect([response.status, await response.text()]).toEqual([200, "ok"]);
    }
  });

  test("to a server that answers wrongly gets an answer with the reason", async () => {
    const backend = await saying(door.route.address, "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n");
    const dead = await answering(door.route.address, (socket) => socket.on("data", () => socket.destroy()));
    const odd = await saying(door.route.address, "SSH-2.0-x\r\n\r\n");
    const unasked = await saying(
      door.route.address,
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n",
    );
    for (const { port } of [backend, dead, odd, unasked]) {
      const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, port) });
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({ sandboxId: door.route.sandboxId, port, code: 502 });
    }
  });

  test("whose answer is cut off is cut off too, never finished", async () => {
    const backend = await answering(door.route.address, (socket) =>
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        socket.once("drain", () => undefined);
        setImmediate(() => socket.destroySoon());
      }),
    );
    const answer = await ask(door.port, `GET / HTTP/1.1\r\n${routing(door.route, backend.port)}\r\n`);
    expect(answer).toMatch(/abc\r\n$/);
  });

  test("ends at the server when its client leaves", async () => {
    const left: string[] = [];
    const backend = await httpBackend(door.route.address, (request, response) => {
      response.write("begun");
      response.on("close", () => left.push(request.method ?? ""));
    });
    onTestFinished(() => backend.close());
    for (const text of [
      `GET / HTTP/1.1\r\n${routing(door.route, backend.port)}\r\n`,
      `POST / HTTP/1.1\r\n${routing(door.route, backend.port)}Content-Length: 10\r\n\r\nabc`,
    ]) {
      const client = await RawClient.open(door.port);
      await client.send(text).until((received) => received.includes("begun"));
      client.destroy();
    }
    await expect.poll(() => left.toSorted()).toEqual(["GET", "POST"]);
  });

  test("is one of several sent at once on a connection, answered in order", async () => {
    const backend = await httpBackend(door.route.address, (request, response) => {
      setTimeout(() => response.end(`[${request.url}]`), request.url === "/1" ? 50 : 0);
    });
    onTestFinished(() => backend.close());
    const one = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${routing(door.route, backend.port)}${more}\r\n`;
    const answer = await ask(door.port, one("/1") + one("/2") + one("/3", "Connection: close\r\n"));
    expect(answer.match(/\[\/\d\]/g)).toEqual(["[/1]", "[/2]", "[/3]"]);
    const client = await RawClient.open(door.port);
    client.send(one("/1"));
    await new Promise((resolve) => setImmediate(resolve));
    client.send(one("/2", "Connection: close\r\n"));
    expect((await client.toEnd()).match(/\[\/\d\]/g)).toEqual(["[/1]", "[/2]"]);
  });

  test("reaches a server a moment after it has started", async () => {
    const late = async () => {
      const parked = await rawBackend(door.route.address, () => undefined);
      const { port } = parked;
      await parked.close();
      const answer = fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, port) });
      await new Promise((resolve) => setTimeout(resolve, 150));
      const backend = await httpBackend(door.route.address, (_request, response) => response.end("here"), port);
      onTestFinished(() => backend.close());
      return (await answer).text();
    };
    // On a busy machine the moment may last longer than the port is dialled again.
    await expect.poll(late).toBe("here");
  });

  test("to a port where nothing listens is answered after some tries, not held", async () => {
    const parked = await rawBackend(door.route.address, () => undefined);
    await parked.close();
    const started = performance.now();
    const response = await fetch(`http://127.0.0.1:${door.port}/`, { headers: routed(door.route, parked.port) });
    expect(response.status).toBe(502);
    expect(await response.json()).toEqual({
      sandboxId: door.route.sandboxId,
      message: "The sandbox is running but port is not open",
      port: parked.port,
      code: 502,
    });
    expect(performance.now() - started).toBeLessThan(30_000);
  });
});
