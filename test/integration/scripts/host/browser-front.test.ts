/** What lets others drive the Chromium of the template browser, in front of a server that stands for Chromium. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { freePort, listening } from "../../../support/peers/listening.ts";

const PROGRAM = join(import.meta.dirname, "../../../../scripts/starters/browser/front.mjs");
/** Another address of this machine: what comes from it has, to the front, come from outside of the sandbox. */
const OUTSIDE = "127.0.0.2";
const INSIDE = "127.0.0.1";

interface Asked {
  readonly host?: string;
  /** Undefined: the one that the kernel chooses, which is all that a page in a browser has. */
  readonly from?: string | undefined;
  readonly to?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Front {
  readonly port: number;
  /** The headers of all that has reached Chromium. */
  readonly reached: IncomingHttpHeaders[];
  readonly ask: (asked: Asked) => Promise<{ readonly status: number; readonly body: string }>;
}

/** @param isUp whether Chromium is there */
async function front(isUp = true): Promise<Front> {
  const reached: IncomingHttpHeaders[] = [];
  const [port, chromiumPort] = [await freePort(), await freePort()];
  if (isUp) {
    const chromium = createServer((asked, answer) => {
      reached.push(asked.headers);
      const place = `127.0.0.1:${chromiumPort}`;
      const about = { webSocketDebuggerUrl: `ws://${place}/devtools/browser/1`, devtoolsFrontendUrl: `?ws=${place}/x` };
      answer.end(asked.url?.startsWith("/json") === true ? JSON.stringify(about) : `as it is: ws://${place}/`);
    });
    const sockets = new WebSocketServer({ server: chromium, path: "/devtools/browser/1" });
    sockets.on("connection", (socket, asked) => {
      reached.push(asked.headers);
      socket.on("message", (data: Buffer) => socket.send(`heard ${data.toString()}`));
    });
    await listening(chromium, "127.0.0.1", chromiumPort);
    onTestFinished(() => {
      for (const socket of sockets.clients) socket.terminate();
      chromium.close();
    });
  }
  const program = spawn(process.execPath, [PROGRAM, String(port), String(chromiumPort)], { stdio: "inherit" });
  onTestFinished(async () => {
    program.kill("SIGKILL");
    if (program.exitCode === null && program.signalCode === null) await once(program, "exit");
  });
  const ask = async ({
    host = `localhost:${port}`,
    from,
    to = INSIDE,
    path = "/json/version",
    headers = {},
  }: Asked) => {
    const options = { host: to, port, localAddress: from, path, headers: { ...headers, host }, agent: false };
    const asked = request(options).end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    return { status: answer.statusCode ?? 0, body: await text(answer) };
  };
  const answers = () => ask({ path: "/" }).then(({ status }) => status, String);
  await expect.poll(answers, { timeout: 30_000 }).toBe(isUp ? 200 : 503);
  reached.length = 0;
  return { port, reached, ask };
}

test("the addresses of the DevTools are those by which the client came, with TLS where it came by TLS", async () => {
  const { ask, reached } = await front();
  const addresses = async (asked: Asked) => {
    const { status, body } = await ask(asked);
    expect(status).toBe(200);
    return JSON.parse(body) as { webSocketDebuggerUrl: string; devtoolsFrontendUrl: string };
  };
  expect(await addresses({ from: OUTSIDE, host: "9222-abc.localhost:3002" })).toEqual({
    webSocketDebuggerUrl: "ws://9222-abc.localhost:3002/devtools/browser/1",
    devtoolsFrontendUrl: "?ws=9222-abc.localhost:3002/x",
  });
  const named = { from: OUTSIDE, host: "9222-abc.sbx.example.org" };
  expect(await addresses(named)).toEqual({
    webSocketDebuggerUrl: "wss://9222-abc.sbx.example.org/devtools/browser/1",
    devtoolsFrontendUrl: "?wss=9222-abc.sbx.example.org/x",
  });
  const withPort = { from: OUTSIDE, host: "9222-abc.sbx.example.org:8443", headers: { "x-forwarded-proto": "https" } };
  expect((await addresses(withPort)).webSocketDebuggerUrl).toMatch(/^wss:\/\/9222-abc\.sbx\.example\.org:8443\//);
  // Chromium answers no other Host.
  for (const { host } of reached) expect(host).toMatch(/^127\.0\.0\.1:\d+$/);
  expect((await ask({ path: "/page" })).body).toMatch(/^as it is: ws:\/\/127\.0\.0\.1:\d+\/$/);
});

test("a WebSocket passes in both directions, with its origin, which Chromium judges", async () => {
  const { port, reached } = await front();
  const socket = new WebSocket(`ws://localhost:${port}/devtools/browser/1`, { origin: "http://a.page" });
  onTestFinished(() => socket.terminate());
  await once(socket, "open");
  socket.send("a command");
  expect(String((await once(socket, "message"))[0])).toBe("heard a command");
  expect(reached.map(({ origin }) => origin)).toEqual(["http://a.page"]);
});

test("a name that leads to the sandbox itself is refused from inside, and reaches no Chromium", async () => {
  const { port, ask, reached } = await front();
  for (const host of [`rebind.test:${port}`, "rebind.test", `localhost.rebind.test:${port}`, "127.0.0.1.rebind.test"]) {
    const { status, body } = await ask({ host });
    expect([status, body]).toEqual([403, expect.stringContaining("localhost or at an address") as string]);
  }
  // Each address of this network is the sandbox itself.
  for (const to of ["127.0.0.2", "127.9.9.9", "0.0.0.0"])
    expect([to, (await ask({ host: "rebind.test", to })).status]).toEqual([to, 403]);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/devtools/browser/1`, {
    headers: { host: `rebind.test:${port}` },
  });
  expect(String((await once(socket, "error"))[0])).toContain("403");
  expect(reached).toEqual([]);
});

test("a program inside is answered at localhost and at addresses", async () => {
  const { ask } = await front();
  const hosts = ["localhost:9222", "a.localhost:9222", "LOCALHOST", "127.0.0.1:9222", "[::1]:9222", "10.1.2.3:9222"];
  for (const host of hosts) expect([host, (await ask({ host })).status]).toEqual([host, 200]);
});

test("while Chromium starts again, a client is told so", async () => {
  const { port, ask } = await front(false);
  expect(await ask({})).toEqual({ status: 503, body: "Chromium does not answer: it is starting again\n" });
  const socket = new WebSocket(`ws://127.0.0.1:${port}/devtools/browser/1`);
  await once(socket, "error");
});
