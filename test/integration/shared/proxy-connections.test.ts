/** The connections that a proxy opens and keeps towards a server, seen from both ends of each. */

import { once } from "node:events";
import type { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { listen } from "../../../shared/proxy/listening/listen.ts";
import { AS_A_PROXY } from "../../../shared/proxy/sending/as-a-proxy.ts";
import type { NextHop } from "../../../shared/proxy/sending/forward-plan.ts";
import { Forwarder } from "../../../shared/proxy/sending/forwarder.ts";
import { dialTcp } from "../../../shared/proxy/sockets/dial.ts";
import { RawClient } from "../../support/peers/raw-client.ts";
import { rawBackend } from "../orchestrator/edge/front-door.ts";

const WAIT = { timeout: 30_000 };
const REQUEST = "GET / HTTP/1.1\r\nHost: server\r\n\r\n";
const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** A proxy with this one next hop, and a client of it. */
async function proxied(nextHop: Pick<NextHop, "dial" | "idleMs">): Promise<RawClient> {
  const forwarder = new Forwarder({ lossGraceMs: 0 });
  const inbound = await listen("127.0.0.1", 0, {
    refusalHeaders: [],
    handle: (client) =>
      forwarder.forward(
        {
          ...AS_A_PROXY,
          executionId: "execution",
          path: "/",
          edits: { drops: () => false },
          nextHops: [{ key: "server", added: [], ours: false, proxied: false, ...nextHop }],
          keepsBack: () => false,
          framesErrors: false,
          refuse: () => inbound.destroy(),
        },
        client,
      ),
  });
  onTestFinished(async () => {
    const closed = inbound.close();
    await forwarder.stop({ code: "unavailable", message: "the test is over" });
    inbound.destroy();
    await closed;
  });
  const client = await RawClient.open(inbound.port);
  onTestFinished(() => client.destroy());
  return client;
}

/** A proxy as `proxied` makes it, before a server whose answers the test sends. */
async function proxiedTo({ idleMs }: Pick<NextHop, "idleMs">) {
  const accepted: Socket[] = [];
  const dialled: Socket[] = [];
  const heard = { requests: 0 };
  const server = await rawBackend("127.0.0.1", (socket) => {
    accepted.push(socket);
    socket.on("data", (chunk: Buffer) => (heard.requests += chunk.toString("latin1").split("\r\n\r\n").length - 1));
  });
  onTestFinished(() => server.close());
  const client = await proxied({
    idleMs,
    async dial(signal) {
      const socket = await dialTcp({ host: "127.0.0.1", port: server.port, timeoutMs: 20_000 }, signal);
      dialled.push(socket);
      return socket;
    },
  });
  /** Sends one request and waits until the server has it. */
  const ask = async () => {
    const before = heard.requests;
    client.send(REQUEST);
    await expect.poll(() => heard.requests, WAIT).toBe(before + 1);
  };
  /** Sends an answer to the request and resolves to what the client receives. */
  const answer = async (from: Socket | undefined, bytes = ANSWER, end = "\r\n\r\nok") => {
    client.received = "";
    from?.write(bytes, "latin1");
    return client.until((received) => received.endsWith(end));
  };
  return { client, accepted, dialled, ask, answer };
}

test("what is dialled for a request ends when the request's client leaves", async () => {
  const signals: AbortSignal[] = [];
  const client = await proxied({
    idleMs: 60_000,
    dial(signal) {
      signals.push(signal);
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    },
  });
  client.send(REQUEST);
  await expect.poll(() => signals.length, WAIT).toBe(1);
  expect(signals[0]?.aborted).toBe(false);
  client.destroy();
  await expect.poll(() => signals[0]?.aborted, WAIT).toBe(true);
});

test("requests one after the other use one connection, and bytes that come between two of them end it", async () => {
  const { client, accepted, dialled, ask, answer } = await proxiedTo({ idleMs: 60_000 });
  for (let request = 0; request < 3; request++) {
    await ask();
    await answer(accepted[0]);
  }
  expect(accepted.length).toBe(1);
  expect(client.closed).toBe(false);
  const ended = once(dialled[0] as Socket, "close");
  accepted[0]?.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled");
  await ended;
  await ask();
  expect(await answer(accepted[1])).toMatch(/\r\n\r\nok$/);
  expect(accepted.length).toBe(2);
});

test("a connection's idle time ends an idle connection, and none that carries a request", async () => {
  const { accepted, dialled, ask, answer } = await proxiedTo({ idleMs: 60_000 });
  await ask();
  await answer(accepted[0]);
  const [socket] = dialled;
  expect(socket?.timeout).toBe(60_000);
  await ask();
  // Node emits this event when the socket has been quiet for its idle time.
  socket?.emit("timeout");
  expect(await answer(accepted[0])).toMatch(/\r\n\r\nok$/);
  expect(socket?.destroyed).toBe(false);
  socket?.emit("timeout");
  expect(socket?.destroyed).toBe(true);
});

test("a connection is closed when its idle time is over", async () => {
  const { accepted, dialled, ask, answer } = await proxiedTo({ idleMs: 50 });
  await ask();
  await answer(accepted[0]);
  await expect.poll(() => dialled[0]?.destroyed, WAIT).toBe(true);
});

test.each([1, 256, 1024, 1025, 5000])("an answer of %i bytes of every value arrives as it was sent", async (length) => {
  const { accepted, ask, answer } = await proxiedTo({ idleMs: 60_000 });
  const bytes = Array.from({ length }, (_, at) => String.fromCharCode(255 - (at & 255))).join("");
  const body = `\r\n\r\n${bytes}`;
  await ask();
  const whole = await answer(accepted[0], `HTTP/1.1 200 OK\r\nContent-Length: ${length}${body}`, body);
  expect(whole.slice(whole.indexOf("\r\n\r\n"))).toBe(body);
  await ask();
  const chunks = `${length.toString(16)}\r\n${bytes}\r\n0\r\n\r\n`;
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect(dechunked(await answer(accepted[0], `${head}${chunks}`, "\r\n0\r\n\r\n"))).toBe(bytes);
});

/** Joins the chunks of a chunked answer. */
function dechunked(answer: string): string {
  let body = "";
  for (let at = answer.indexOf("\r\n\r\n") + 4; ; ) {
    const begin = answer.indexOf("\r\n", at) + 2;
    const length = Number.parseInt(answer.slice(at, begin), 16);
    if (length === 0) return body;
    body += answer.slice(begin, begin + length);
    at = begin + length + 2;
  }
}
