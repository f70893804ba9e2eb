/** TLS between machines of the platform, on real sockets: who gets in, who is called, and what a renewal changes. */

import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Type } from "typebox";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../shared/http/client.ts";
import { contract } from "../../../shared/http/contract.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";
import { liveCredentials } from "../../../shared/tls/live.ts";
import { EDGE, nodeName, ORCHESTRATOR } from "../../../shared/tls/names.ts";
import { clientOptions, type Door, type Meeting, nameOf } from "../../../shared/tls/peers.ts";
import { type TestPlatform, testPlatform } from "../../support/tls/platform.ts";

const api = contract({
  who: {
    method: "GET",
    path: "/who",
    summary: "The name of the caller",
    tag: "Test",
    access: "none",
    status: 200,
    reply: Type.Object({ name: Type.String(), serial: Type.String() }),
  },
});

let platform: TestPlatform;
let stranger: TestPlatform;
beforeAll(async () => {
  [platform, stranger] = await Promise.all([testPlatform(), testPlatform()]);
});

/** A server that answers each request with the name of its caller; counts the requests that reach a handler. */
async function open(door: Door) {
  const server = createServer(createLog({ component: "test", level: "silent" }), { door });
  const seen = { requests: 0, sockets: [] as TLSSocket[] };
  server.addHook("onRequest", (request, _reply, done) => {
    seen.requests++;
    seen.sockets.push(request.raw.socket as TLSSocket);
    done();
  });
  serve(
    server,
    api,
    {
      who: () => {
        const socket = seen.sockets.at(-1) as TLSSocket;
        return { name: nameOf(socket) ?? "nobody", serial: socket.getPeerCertificate().serialNumber ?? "" };
      },
    },
    () => undefined,
  );
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.server.address() as AddressInfo;
  onTestFinished(() => server.close());
  return { url: `https://127.0.0.1:${port}`, port, seen };
}

async function call(url: string, meeting: Meeting | undefined) {
  const connection = connect(api, { url, name: "node n1", timeoutMs: 30_000, meeting });
  try {
    return await connection.call.who({});
  } finally {
    await connection.close();
  }
}

describe("a node's server", () => {
  test("lets the orchestrator in and learns its name", async () => {
    const { url } = await open(await platform.nodeDoor("n1"));
    expect(await call(url, await platform.toNode("n1"))).toMatchObject({ name: ORCHESTRATOR });
  });

  test.each([
    ["a node of the same platform", () => platform.credentials(nodeName("n2"))],
    ["an edge where only the orchestrator may call", () => platform.credentials(EDGE)],
    ["an orchestrator of another platform", () => stranger.credentials(ORCHESTRATOR)],
    ["an orchestrator whose certificate has ended", () => platform.credentials(ORCHESTRATOR, 73)],
    ["an orchestrator whose certificate is not valid yet", () => platform.credentials(ORCHESTRATOR, -2)],
  ])("does not let a request of %s reach a handler", async (_who, credentials) => {
    const { url, seen } = await open(await platform.nodeDoor("n1"));
    const own = await credentials();
    // It trusts the server, so that only the server's own check can refuse.
    const trusting = liveCredentials({ ...own.current, authority: platform.authority.certificate });
    await expect(call(url, { credentials: trusting, expects: nodeName("n1") })).rejects.toMatchObject({
      code: "node_unreachable",
    });
    expect(seen.requests).toBe(0);
  });

  test("does not let a client without a certificate reach a handler", async () => {
    const { port, seen } = await open(await platform.nodeDoor("n1"));
    const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false });
    socket.on("error", () => undefined);
    socket.write("GET /who HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((closed) => socket.once("close", closed));
    expect(seen.requests).toBe(0);
  });

  test("closes a connection that does not speak TLS", async () => {
    const { port, seen } = await open(await platform.nodeDoor("n1"));
    const socket = connectTcp({ host: "127.0.0.1", port });
    socket.on("error", () => undefined);
    socket.resume();
    socket.write("GET /who HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((closed) => socket.once("close", closed));
    expect(seen.requests).toBe(0);
  });

  test("that admits strangers knows nobody's name without a certificate", async () => {
    const { url, port } = await open({ credentials: await platform.credentials(ORCHESTRATOR), admits: () => true });
    const socket = connectTls({ ...clientOptions(await meetingOf()), cert: "", key: "", host: "127.0.0.1", port });
    socket.end("GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    expect(text).toContain('"nobody"');
    expect(await call(url, await meetingOf())).toMatchObject({ name: nodeName("n1") });
  });
});

async function meetingOf(): Promise<Meeting> {
  return { credentials: await platform.credentials(nodeName("n1")), expects: ORCHESTRATOR };
}

describe("a caller", () => {
  test.each([
    {
      who: "another node",
      door: () => platform.nodeDoor("n2"),
      why: "another machine answers at https://127.0.0.1:PORT: its certificate is of svc://node/n2, not of svc://node/n1",
    },
    {
      who: "a node of another platform",
      door: async () => ({ ...(await stranger.nodeDoor("n1")), admits: () => true }),
      why: "the certificate at https://127.0.0.1:PORT is of another authority than the platform's",
    },
    {
      who: "a node whose certificate has ended",
      door: async () => ({ credentials: await platform.credentials(nodeName("n1"), 73), admits: () => true }),
      why: "the certificate at https://127.0.0.1:PORT has ended by this machine's clock",
    },
    {
      who: "a node whose clock is two hours ahead",
      door: async () => ({ credentials: await platform.credentials(nodeName("n1"), -2), admits: () => true }),
      why: "the certificate at https://127.0.0.1:PORT is not valid yet by this machine's clock",
    },
  ])("that meets $who sends no request and says so", async ({ door, why }) => {
    const { url, port, seen } = await open(await door());
    const refused = call(url, await platform.toNode("n1"));
    await expect(refused).rejects.toThrow(`node n1 did not answer GET /who: ${why.replace("PORT", String(port))}`);
    expect(seen.requests).toBe(0);
  });

  test("takes a node whose clock is half an hour ahead", async () => {
    const credentials = await platform.credentials(nodeName("n1"), -0.5);
    const { url } = await open({ credentials, admits: (name) => name === ORCHESTRATOR });
    expect(await call(url, await platform.toNode("n1"))).toMatchObject({ name: ORCHESTRATOR });
  });

  test("says that a plain server does not speak TLS, and sends it no request", async () => {
    const received: string[] = [];
    const server = createHttpServer((request, response) => {
      received.push(request.url ?? "");
      response.end("{}");
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    onTestFinished(() => void server.close());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(call(url, await platform.toNode("n1"))).rejects.toThrow(`what listens at ${url} does not speak TLS`);
    // Without the platform's credentials too, an https address is never spoken to in clear.
    await expect(call(url, undefined)).rejects.toThrow(`what listens at ${url} does not speak TLS`);
    expect(received).toEqual([]);
  });

  test("names the address where nothing listens", async () => {
    const { url, port } = await open(await platform.nodeDoor("n1"));
    const other = url.replace(String(port), "1");
    await expect(call(other, await platform.toNode("n1"))).rejects.toThrow(`nothing listens at ${other}`);
  });
});

test("a renewal is shown on the next connection, by server and client, and open connections go on", async () => {
  const door = await platform.nodeDoor("n1");
  const { url, port } = await open(door);
  const credentials = await platform.credentials(ORCHESTRATOR);
  const meeting = { credentials, expects: nodeName("n1") };
  const kept = connect(api, { url, name: "node n1", meeting });
  onTestFinished(() => kept.close());
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connectTls({ ...clientOptions(meeting), host: "127.0.0.1", port }, () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      });
      socket.once("error", reject);
    });
  const before = { server: await shown(), client: (await kept.call.who({})).serial };
  door.credentials.replace(await platform.authority.issue(nodeName("n1"), Date.now()));
  credentials.replace(await platform.authority.issue(ORCHESTRATOR, Date.now()));
  expect((await kept.call.who({})).serial).toBe(before.client);
  expect(await shown()).not.toBe(before.server);
  expect((await call(url, meeting)).serial).not.toBe(before.client);
});
