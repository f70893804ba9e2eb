/** A request that cannot be forwarded gets an error as its answer, and no part of it reaches the destination. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { listening } from "../../../support/peers/listening.ts";
import {
  dial,
  exchangeRaw,
  leafOf,
  listenTransformed,
  nodeAuthority,
  startOrigin,
} from "../../../support/peers/transformed.ts";

const HOST = "api.example.test";
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const CLOSING = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`;
const DAY_MS = 86_400_000;
const VERIFYING = ["-verify_return_error", "-verify", "5"];

async function behind(leaf?: Awaited<ReturnType<typeof leafOf>>, headers: Record<string, string> = {}) {
  const asked: string[] = [];
  const origin = await startOrigin(
    HOST,
    (request, response) => {
      asked.push(request.url ?? "");
      response.end("ok");
    },
    leaf,
  );
  const listening = await listenTransformed({
    hostname: HOST,
    tls: true,
    to: origin.port,
    headers,
    secrets: { "e2b.secrets.BAD": "x\r\nY: top-secret" },
  });
  return { ...listening, origin, requests: asked };
}

test.each([
  [
    "of an unknown authority",
    () => leafOf(HOST, undefined, nodeAuthority),
    /is not trusted: .* \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/,
  ],
  ["of another name", () => leafOf("other.test"), /is for another name \(ERR_TLS_CERT_ALTNAME_INVALID\)/],
  [
    "that has expired",
    () => leafOf(HOST, { from: Date.now() - 2 * DAY_MS, until: Date.now() - DAY_MS }),
    /is not trusted: certificate has expired \(CERT_HAS_EXPIRED\)/,
  ],
  [
    "that begins tomorrow",
    () => leafOf(HOST, { from: Date.now() + DAY_MS, until: Date.now() + 2 * DAY_MS }),
    /\(CERT_NOT_YET_VALID\)/,
  ],
])(
  "a destination with a certificate %s gets no request, and the client gets 502 with the reason",
  async (_, leaf, text) => {
    const { port, requests, ended } = await behind(await leaf());
    const answer = await exchangeRaw(port, HOST, CLOSING);
    expect(answer).toMatch(/^HTTP\/1.1 502 Bad Gateway\r\n/);
    expect(answer).toMatch(text);
    expect(requests).toEqual([]);
    await expect.poll(() => ended[0]?.failed).toMatch(text);
  },
);

test.each([
  [
    "that does not exist",
    { X: "${e2b.secrets.GONE}" },
    "the placeholder ${e2b.secrets.GONE} cannot be resolved: there is no such value",
  ],
  ["that is malformed", { X: "${e2b.nothing}" }, "the placeholder ${e2b.nothing} is malformed"],
  [
    "whose value no header can hold",
    { X: "${e2b.secrets.BAD}" },
    "the value of the placeholder ${e2b.secrets.BAD} has characters that no header can have: line breaks",
  ],
  ["that would frame the message", { "Content-Length": "5" }, "a rule cannot set the header Content-Length"],
])(
  "a placeholder %s gives 502 without its value, nothing is sent, and the connection can be used again",
  async (_, headers, text) => {
    const { port, requests, origin, ended } = await behind(undefined, headers);
    const answer = await exchangeRaw(port, HOST, `${GET}${CLOSING}`);
    expect(answer.match(/HTTP\/1.1 502/g)).toHaveLength(2);
    expect(answer).toContain(`svc: ${text}\n`);
    expect(answer).not.toContain("top-secret");
    expect([requests, origin.connections()]).toEqual([[], 0]);
    await expect.poll(() => ended[0]?.failed).toBe(text);
  },
);

test.each([
  [
    "refused",
    () => Promise.reject(Object.assign(new Error("connect ECONNREFUSED 10.9.8.7:443"), { code: "ECONNREFUSED" })),
    `${HOST} cannot be reached: connection refused (ECONNREFUSED)`,
  ],
  [
    "forbidden",
    () => Promise.reject(new AppError("forbidden", "the name leads to 10.0.0.1, which is never reachable")),
    `${HOST} cannot be reached: the name leads to 10.0.0.1, which is never reachable`,
  ],
  ["failed", () => Promise.reject(new Error("proxy user:password@host")), `${HOST} cannot be reached: it failed`],
])("a connection that is %s gives 502 with the reason and nothing else", async (_, to, text) => {
  const { port } = await listenTransformed({ hostname: HOST, tls: true, to });
  expect(await exchangeRaw(port, HOST, CLOSING)).toMatch(
    new RegExp(`^HTTP/1.1 502 [^]*\r\n\r\nsvc: ${text.replaceAll(/[.()]/g, "\\$&")}\n$`),
  );
});

test("a destination that answers without TLS, without HTTP or not at all gives 502", async () => {
  for (const says of ["220 mail\r\n", undefined]) {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      if (says === undefined) socket.end();
      else socket.write(says);
    });
    const to = await listening(server);
    onTestFinished(() => void server.close());
    for (const tls of [true, false]) {
      const { port } = await listenTransformed({ hostname: HOST, tls, to });
      const answer = await exchangeRaw(port, tls ? HOST : undefined, CLOSING);
      expect(answer).toMatch(/^HTTP\/1.1 502 [^]*svc: [^]*\n$/);
      if (tls && says !== undefined) expect(answer).toContain("it does not speak TLS (ERR_SSL_");
    }
  }
});

test("a handshake for another name, without a name, or for HTTP/2 only ends", async () => {
  const { port, dials, ended } = await behind();
  const offer = async (options: object) => {
    const socket = tlsConnect({ socket: await dial(port), ca: nodeAuthority.certificate, ...options });
    return new Promise<string>((resolve) => {
      socket.once("secureConnect", () => socket.write(CLOSING));
      socket.once("data", () => resolve("served"));
      socket.once("error", () => resolve("refused"));
      socket.once("close", () => resolve("refused"));
      socket.once("end", () => resolve("refused"));
    });
  };
  expect(await offer({ servername: HOST })).toBe("served");
  expect(await offer({ servername: "other.test" })).toBe("refused");
  expect(await offer({ checkServerIdentity: () => undefined })).toBe("refused");
  expect(await offer({ servername: HOST, ALPNProtocols: ["h2"] })).toBe("refused");
  expect(await offer({ servername: HOST, ALPNProtocols: ["h2", "http/1.1"] })).toBe("served");
  expect(dials()).toBe(2);
  await expect
    .poll(() => ended.flatMap(({ failed }) => (failed === undefined ? [] : [failed])))
    .toEqual([
      "the TLS handshake of the sandbox failed: another name than the connection's",
      "the TLS handshake of the sandbox failed: without the name of the connection",
      expect.stringMatching(
        /failed: the program speaks HTTP\/2 alone .*HTTP\/1\.1.* \(ERR_SSL_NO_APPLICATION_PROTOCOL\)$/,
      ),
    ]);
});

test("a program that does not trust the node's authority, or has no new TLS, is named so in the log", async () => {
  const { port, dials, ended } = await behind();
  const refused = async (options: object) => {
    const under = await dial(port);
    const socket = tlsConnect({ socket: under, servername: HOST, ...options });
    await new Promise<void>((resolve) => {
      socket.once("error", () => resolve());
      socket.once("close", () => resolve());
    });
    under.destroy();
  };
  const untrusting = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, "-servername", HOST, ...VERIFYING]);
  onTestFinished(() => void untrusting.kill());
  untrusting.stdin.end();
  await once(untrusting, "close");
  await refused({ ca: [] });
  await refused({ minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" });
  expect(dials()).toBe(0);
  await expect
    .poll(() => ended.flatMap(({ failed }) => (failed === undefined ? [] : [failed])))
    .toEqual([
      expect.stringMatching(/failed: the program does not trust .*SSL_CERT_FILE.* \(ERR_SSL_TLSV1_ALERT_UNKNOWN_CA\)$/),
      expect.stringMatching(
        /failed: the connection ended in it: perhaps the program does not trust .* \(ECONNRESET\)$/,
      ),
      expect.stringMatching(
        /failed: the program offers no version of TLS from 1\.2 on \(ERR_SSL_UNSUPPORTED_PROTOCOL\)$/,
      ),
    ]);
});
