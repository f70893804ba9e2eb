/** What a program and the log read when the egress proxy does not connect: each failure has words of its own. */

import { createServer as createTcpServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type DialDeps, dial } from "../../../../agent/egress/connect/dial.ts";
import { listening } from "../../../support/peers/listening.ts";
import { exchangeRaw, listenTransformed } from "../../../support/peers/transformed.ts";

const HOST = "api.example.test";
const deps: DialDeps = {
  names: { addresses: () => Promise.resolve({ addresses: [], ttl: 0, code: 3 }) },
  isOwn: () => false,
  proxyAllowedRanges: ["127.0.0.0/8"],
};

/** A SOCKS5 proxy that answers the messages of its client with these bytes, one after the other, and then ends. */
async function answersThrough(...answers: readonly (readonly number[])[]) {
  const server = createTcpServer((socket: Socket) => {
    const left = [...answers];
    socket.on("error", () => undefined);
    socket.on("data", () => {
      const next = left.shift();
      if (next === undefined) socket.end();
      else socket.write(Buffer.from(next));
      if (left.length === 0) socket.end();
    });
  });
  const port = await listening(server);
  onTestFinished(() => void server.close());
  return through(port);
}

async function through(proxyPort: number) {
  const proxy = { host: "127.0.0.1", port: proxyPort, username: "me", password: "wrong-password" };
  const signal = new AbortController().signal;
  const { port, ended } = await listenTransformed({
    hostname: HOST,
    tls: false,
    port: 80,
    to: () => dial({ is: "proxied", proxy, host: HOST }, { port: 80, signal }, deps),
  });
  const answer = await exchangeRaw(port, undefined, `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
  await expect.poll(() => ended[0]?.failed).toBeDefined();
  return { answer, failed: ended[0]?.failed ?? "" };
}

const METHOD = [5, 2];
const ACCEPTED = [1, 0];
const reply = (code: number) => [5, code, 0, 1, 0, 0, 0, 0, 0, 0];

test.each([
  ["a wrong password", [METHOD, [1, 1]], "it refused the user name or the password"],
  ["no common authentication", [[5, 0xff]], "it wants another kind of authentication"],
  ["a general failure", [METHOD, ACCEPTED, reply(1)], "it refused the connection without a known reason"],
  ["a connection that it does not allow", [METHOD, ACCEPTED, reply(2)], "it does not allow the connection"],
  ["an unreachable network", [METHOD, ACCEPTED, reply(3)], "it finds no route to the destination's network"],
  ["an unreachable host", [METHOD, ACCEPTED, reply(4)], "it cannot reach the destination"],
  ["a refused connection", [METHOD, ACCEPTED, reply(5)], "the destination refused the connection"],
  ["an expired TTL", [METHOD, ACCEPTED, reply(6)], "the destination did not answer it in time"],
  ["an unsupported command", [METHOD, ACCEPTED, reply(7)], "it does not support outgoing connections"],
  ["an unsupported address", [METHOD, ACCEPTED, reply(8)], "it does not support the destination's kind of address"],
  ["the end of the connection", [], "it closed the connection"],
])("%s is said in the answer and in the log", async (_name, answers, words) => {
  const { answer, failed } = await answersThrough(...answers);
  expect(answer).toMatch(/^HTTP\/1\.1 502 /);
  expect(failed).toBe(`${HOST} cannot be reached: egress proxy: ${words}`);
  expect(answer).toContain(failed);
  expect(answer).not.toContain("wrong-password");
});

test("a proxy that is not there is not taken for the destination", async () => {
  const server = createTcpServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  const { failed } = await through(port);
  expect(failed).toBe(`${HOST} cannot be reached: egress proxy: it cannot be reached (ECONNREFUSED)`);
});

const BASIC = "Proxy-Authenticate: Basic realm=proxy\r\n";
const WINDOWS = "Proxy-Authenticate: NTLM\r\nProxy-Authenticate: Negotiate\r\n";

test.each([
  [
    "no password where one is wanted",
    undefined,
    BASIC,
    "it wants the user name and the password of SVC_SANDBOX_HTTPS_PROXY",
  ],
  ["a wrong password", "Basic eDp5", BASIC, "it refused the user name and the password of SVC_SANDBOX_HTTPS_PROXY"],
  [
    "another kind beside Basic",
    "Basic eDp5",
    WINDOWS + BASIC,
    "it refused the user name and the password of SVC_SANDBOX_HTTPS_PROXY",
  ],
  [
    "another kind in one line with Basic",
    undefined,
    'Proxy-Authenticate: Digest realm="a b", Basic realm=proxy\r\n',
    "it wants the user name and the password of SVC_SANDBOX_HTTPS_PROXY",
  ],
  [
    "other kinds alone",
    "Basic eDp5",
    WINDOWS,
    "it wants NTLM or Negotiate, and only a user name and a password are sent",
  ],
])("the 407 of a company's proxy is said in words: %s", async (_name, authorization, headers, words) => {
  const server = createTcpServer((socket: Socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(`HTTP/1.1 407 Proxy Authentication Required\r\n${headers}\r\n`));
  });
  const port = await listening(server);
  onTestFinished(() => void server.close());
  const proxy = { host: "127.0.0.1", port, ...(authorization === undefined ? {} : { authorization }) };
  const { signal } = new AbortController();
  await expect(dial({ is: "company", proxy, host: HOST, addresses: [] }, { port: 443, signal }, deps)).rejects.toThrow(
    `the company's proxy refused the connection with status 407: ${words}`,
  );
});
