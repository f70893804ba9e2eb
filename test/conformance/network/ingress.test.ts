/** Options of the traffic from outside: TLS servers, private traffic, the host name that servers see. */

import { Sandbox } from "e2b";
import { beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { openPlatform, readReply } from "../../support/platform/platform.ts";
import { serverScript } from "../../support/sandbox/in-sandbox-server.ts";
import { type PortCall, send } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox, refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const TOKEN_HEADERS = ["e2b-traffic-access-token", "svc-traffic-access-token"] as const;

describe("servers inside", () => {
  const sandbox = sharedSandbox({ network: { httpsPorts: [8443, 8444, 8445, 8446] } });

  beforeAll(async () => {
    await prepare(sandbox());
    await certify(sandbox());
    await start(sandbox(), 8001, "127.0.0.1");
    await start(sandbox(), 8002, "::1");
    await start(sandbox(), 8443, "0.0.0.0", "/tmp/both.pem");
    await start(sandbox(), 8444, "127.0.0.1", "/tmp/both.pem");
    await start(sandbox(), 8445, "::1", "/tmp/both.pem");
    await start(sandbox(), 8446, "0.0.0.0");
    await start(sandbox(), 9443, "0.0.0.0", "/tmp/both.pem");
  });

  test.each([
    ["127.0.0.1", 8001],
    ["::1", 8002],
    ["every address, over TLS", 8443],
    ["127.0.0.1, over TLS", 8444],
    ["::1, over TLS", 8445],
  ])("on %s are reached by requests and WebSockets", async (_where, port) => {
    const response = await send(platform, sandbox().sandboxId, "/inside", { port });
    expect([response.status, await response.json()]).toMatchObject([200, { path: "/inside" }]);
    expect(await echo(sandbox(), port, "hello")).toBe("hello");
  });

  test("are reached in the protocol that the option names, also when they speak another", async () => {
    const notTls = await send(platform, sandbox().sandboxId, "/", { port: 8446 });
    expect(notTls.status).toBe(502);
    // The edge speaks plain HTTP to a TLS server that is not in the list, and the server refuses that in its own way.
    const notListed = await send(platform, sandbox().sandboxId, "/", { port: 9443 });
    expect(notListed.status).toBeGreaterThanOrEqual(400);
  });

  test("over TLS are the same after a pause, and so is the list", async () => {
    const own = await ownSandbox({ network: { httpsPorts: [8443] } });
    await prepare(own);
    await certify(own);
    await start(own, 8443, "127.0.0.1", "/tmp/both.pem");
    await own.pause();
    await own.connect();
    const response = await send(platform, own.sandboxId, "/again", { port: 8443 });
    expect([response.status, await response.json()]).toMatchObject([200, { path: "/again" }]);
    expect((await own.getInfo()).network?.httpsPorts).toEqual([8443]);
  });

  test("envd's own port cannot be one of them", async () => {
    const error = await refusal(Sandbox.create({ network: { httpsPorts: [443, 49_983] } }));
    expect(error.message).toBe("400: body field 'network.httpsPorts' must not contain 49983");
  });
});

describe("private traffic", () => {
  const sandbox = sharedSandbox({ network: { allowPublicTraffic: false } });
  const token = () => sandbox().trafficAccessToken ?? "";

  beforeAll(async () => {
    await prepare(sandbox());
    await start(sandbox(), 8000, "0.0.0.0");
  });

  test("without its token is refused, also as a WebSocket and for a port where nothing listens", async () => {
    for (const port of [8000, 9]) {
      const reply = await readReply(await send(platform, sandbox().sandboxId, "/", { port }));
      expect([reply.status, reply.json]).toEqual([
        403,
        {
          sandboxId: sandbox().sandboxId,
          message: "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing",
          code: 403,
        },
      ]);
    }
    await expect(echo(sandbox(), 8000, "x")).rejects.toThrow("403");
    await expect(echo(sandbox(), 8000, "x", { [TOKEN_HEADERS[0]]: "wrong" })).rejects.toThrow("403");
  });

  test.each(TOKEN_HEADERS)("takes the token in %s, and the server sees none of it", async (name) => {
    const both = { [TOKEN_HEADERS[0]]: token(), [TOKEN_HEADERS[1]]: token(), "x-mine": "kept" };
    const response = await send(platform, sandbox().sandboxId, "/h", { port: 8000, headers: { [name]: token() } });
    expect(response.status).toBe(200);
    expect(await response.text()).not.toContain(token());
    expect(await echo(sandbox(), 8000, "hi", both)).toBe("hi");
    const handshake = (await sandbox().files.read("/tmp/handshake")).toLowerCase();
    expect(handshake).toContain("x-mine: kept");
    expect(handshake).not.toMatch(/traffic|e2b-sandbox|svc-/);
    expect(handshake).not.toContain(token());
  });

  test("has the same token after a pause, and another one in a fork", async () => {
    const own = await ownSandbox({ network: { allowPublicTraffic: false } });
    await prepare(own);
    await start(own, 8000, "0.0.0.0");
    const before = own.trafficAccessToken ?? "";
    await own.pause();
    const again = await Sandbox.connect(own.sandboxId);
    expect(again.trafficAccessToken).toBe(before);
    expect((await get(own, { headers: { [TOKEN_HEADERS[0]]: before } })).status).toBe(200);
    const [copy] = await again.fork();
    if (!(copy instanceof Sandbox)) throw new Error("no fork", { cause: copy });
    try {
      expect(copy.trafficAccessToken).toMatch(/\S{16,}/);
      expect(copy.trafficAccessToken).not.toBe(before);
      expect((await get(copy, { headers: { [TOKEN_HEADERS[0]]: before } })).status).toBe(403);
      const own = { [TOKEN_HEADERS[0]]: copy.trafficAccessToken ?? "" };
      expect((await get(copy, { headers: own })).status).toBe(200);
    } finally {
      await copy.kill();
    }
  });
});

test("the host name that servers see may be set, for WebSockets too, and after a pause", async () => {
  // oxlint-disable-next-line no-template-curly-in-string -- the placeholder of the wire contract
  const sandbox = await ownSandbox({ network: { maskRequestHost: "local.example:${PORT}" } });
  await prepare(sandbox);
  await start(sandbox, 8000, "0.0.0.0");
  const original = new URL(platform.sandboxUrl).host;
  const expected = { host: "local.example:8000", "x-forwarded-host": original };
  expect(await (await get(sandbox)).json()).toMatchObject({ headers: expected });
  expect(await echo(sandbox, 8000, "hi", { "x-forwarded-host": "forged.example" })).toBe("hi");
  const handshake = (await sandbox.files.read("/tmp/handshake")).toLowerCase();
  expect(handshake).toContain("host: local.example:8000");
  expect(handshake).toContain(`x-forwarded-host: ${original}`);
  expect(handshake).not.toContain("forged");
  await sandbox.pause();
  await sandbox.connect();
  expect(await (await get(sandbox)).json()).toMatchObject({ headers: expected });
});

async function prepare(sandbox: Sandbox): Promise<void> {
  await sandbox.files.write("/tmp/server.py", serverScript);
}

async function certify(sandbox: Sandbox): Promise<void> {
  const make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=nobody -keyout key.pem -out cert.pem 2>/dev/null";
  await sandbox.commands.run(`cd /tmp && ${make} && cat key.pem cert.pem > both.pem`);
}

async function start(sandbox: Sandbox, port: number, address: string, certificate = ""): Promise<void> {
  const command = `python3 /tmp/server.py ${port} ${address} ${certificate}`;
  await sandbox.commands.run(command, { background: true, timeoutMs: 0 });
  await sandbox.commands.run(`until ss -Htln sport = :${port} | grep -q .; do sleep 0.05; done`);
}

function get(sandbox: Sandbox, call: PortCall = {}): Promise<Response> {
  return send(platform, sandbox.sandboxId, "/", { port: 8000, ...call });
}

/** Sends `text` to a WebSocket server and resolves to its reply; rejects when the server refuses the handshake. */
function echo(sandbox: Sandbox, port: number, text: string, more: Record<string, string> = {}): Promise<string> {
  const headers = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": String(port), ...more };
  const socket = new WebSocket(`${platform.sandboxUrl.replace("http", "ws")}/ws`, { headers });
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("open", () => socket.send(text));
    socket.on("message", (data) => {
      socket.close(1000);
      resolve((data as Buffer).toString());
    });
  });
}
