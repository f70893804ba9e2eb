/** A server in the sandbox, reached from outside through the edge: HTTP, streams, WebSockets, closed ports and errors. */

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Sandbox } from "e2b";
import { beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { openPlatform, readReply } from "../../support/platform/platform.ts";
import { serverScript } from "../../support/sandbox/in-sandbox-server.ts";
import { send } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

describe("a running server", () => {
  const sandbox = sharedSandbox();

  beforeAll(async () => {
    await sandbox().files.write("/tmp/server.py", serverScript);
    await sandbox().commands.run("python3 /tmp/server.py 8000 0.0.0.0", { background: true, timeoutMs: 0 });
    await sandbox().commands.run("python3 /tmp/server.py 8001 127.0.0.1", { background: true, timeoutMs: 0 });
    for (const port of [8000, 8001]) {
      await sandbox().commands.run(`until ss -Htln sport = :${port} | grep -q .; do sleep 0.05; done`);
    }
  });

  test("is reached by the routing headers of either family", async () => {
    for (const family of ["e2b", "svc"]) {
      const headers = { [`${family}-sandbox-id`]: sandbox().sandboxId, [`${family}-sandbox-port`]: "8000" };
      const response = await fetch(`${platform.sandboxUrl}/hello?a=b%20c`, { headers });
      expect(await response.json()).toMatchObject({ method: "GET", path: "/hello?a=b%20c" });
    }
  });

  test("is reached by host name", async () => {
    const host = sandbox().getHost(8000);
    expect(host.split(".")[0]).toBe(`8000-${sandbox().sandboxId}`);
    const reply = await byHost(host, "/by-host");
    expect(reply).toMatchObject({ path: "/by-host", headers: { host } });
    expect(await byHost(`8000-${sandbox().sandboxId}.some.other.example`, "/x")).toMatchObject({ path: "/x" });
  });

  test("sees the request as it was sent, and no secret of the platform", async () => {
    const response = await send(platform, sandbox().sandboxId, "/headers", {
      port: 8000,
      headers: {
        "x-mine": "ü".normalize("NFC").charCodeAt(0).toString(),
        cookie: "a=b",
        authorization: "Bearer users-own",
      },
    });
    const { headers } = (await response.json()) as { headers: Record<string, string> };
    expect(headers).toMatchObject({ "x-mine": "252", cookie: "a=b", authorization: "Bearer users-own" });
    expect(JSON.stringify(headers).toLowerCase()).not.toMatch(/traffic-access|node-token/);
  });

  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s goes through", async (method) => {
    const body = method === "GET" ? {} : { body: "the body" };
    const response = await send(platform, sandbox().sandboxId, "/method", { port: 8000, method, ...body });
    expect(await response.json()).toMatchObject({ method, body: method === "GET" ? "" : "the body" });
  });

  test("statuses, repeated headers and redirects come back as they are", async () => {
    const response = await fetch(`${platform.sandboxUrl}/status/418`, {
      headers: { "e2b-sandbox-id": sandbox().sandboxId, "e2b-sandbox-port": "8000" },
    });
    expect(response.status).toBe(418);
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    const redirect = await fetch(`${platform.sandboxUrl}/redirect`, {
      redirect: "manual",
      headers: { "e2b-sandbox-id": sandbox().sandboxId, "e2b-sandbox-port": "8000" },
    });
    expect([redirect.status, redirect.headers.get("location")]).toEqual([302, "/elsewhere"]);
  });

  test("a stream arrives piece by piece, not all at its end", async () => {
    const response = await send(platform, sandbox().sandboxId, "/stream", { port: 8000 });
    expect(await response.text()).toBe("piece 0\npiece 1\npiece 2\npiece 3\npiece 4\n");
    // This one ends after hours.
    const endless = await send(platform, sandbox().sandboxId, "/forever", { port: 8000 });
    let heard = "";
    for await (const chunk of endless.body ?? []) {
      heard += Buffer.from(chunk as Uint8Array).toString("utf8");
      if (heard.startsWith("tick\ntick\ntick\n")) break;
    }
    expect(heard).toContain("tick\ntick\ntick\n");
  });

  test("a hundred megabytes go up and come down whole", async () => {
    const bytes = new Uint8Array(randomBytes(100 << 20));
    const response = await send(platform, sandbox().sandboxId, "/hash", { port: 8000, method: "POST", body: bytes });
    expect(await response.text()).toBe(createHash("sha256").update(bytes).digest("hex"));
    const down = await send(platform, sandbox().sandboxId, `/zeros/${100 << 20}`, { port: 8000 });
    let size = 0;
    for await (const chunk of down.body ?? []) size += (chunk as Uint8Array).length;
    expect(size).toBe(100 << 20);
  }, 400_000);

  test("a server that listens on 127.0.0.1 only is reached too", async () => {
    const response = await send(platform, sandbox().sandboxId, "/inside", { port: 8001 });
    expect([response.status, ((await response.json()) as { path: string }).path]).toEqual([200, "/inside"]);
  });

  test.each([8000, 8001])("a WebSocket on port %i echoes both kinds of message and closes cleanly", async (port) => {
    const socket = new WebSocket(`${platform.sandboxUrl.replace("http", "ws")}/ws`, {
      headers: { "e2b-sandbox-id": sandbox().sandboxId, "e2b-sandbox-port": String(port) },
    });
    const heard: string[] = [];
    const closed = new Promise<number>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("close", resolve);
    });
    socket.on("message", (data, binary) => {
      heard.push(`${binary ? "binary" : "text"} ${(data as Buffer).length}`);
      if (heard.length === 2) socket.close(1000);
    });
    socket.on("open", () => {
      socket.send("hello");
      socket.send(randomBytes(60_000));
    });
    expect(await closed).toBe(1000);
    expect(heard).toEqual(["text 5", "binary 60000"]);
  });

  test("a preflight reaches the sandbox's own server", async () => {
    const response = await send(platform, sandbox().sandboxId, "/method", {
      port: 8000,
      method: "OPTIONS",
      headers: { origin: "http://page.example", "access-control-request-method": "PUT" },
    });
    expect(await response.json()).toMatchObject({ method: "OPTIONS" });
  });

  test("eighty requests at once are all answered", async () => {
    const replies = await Promise.all(
      Array.from({ length: 80 }, (_, index) => send(platform, sandbox().sandboxId, `/n/${index}`, { port: 8000 })),
    );
    const paths = await Promise.all(replies.map(async (reply) => ((await reply.json()) as { path: string }).path));
    expect(paths).toEqual(Array.from({ length: 80 }, (_, index) => `/n/${index}`));
  });

  test("two requests on one connection do not mix", async () => {
    const text = await rawExchange([
      `GET /first HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: ${sandbox().sandboxId}\r\nE2b-Sandbox-Port: 8000\r\n\r\n`,
      `GET /second HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: ${sandbox().sandboxId}\r\nE2b-Sandbox-Port: 8001\r\nConnection: close\r\n\r\n`,
    ]);
    expect(text.indexOf('"/first"')).toBeGreaterThan(0);
    expect(text.indexOf('"/second"')).toBeGreaterThan(text.indexOf('"/first"'));
  });
});

describe("what the edge answers itself", () => {
  const sandbox = sharedSandbox();
  const routing = (port: number) => ({ "e2b-sandbox-id": sandbox().sandboxId, "e2b-sandbox-port": String(port) });
  const notFound = (id: string) => ({ sandboxId: id, message: "The sandbox was not found", code: 502 });

  test("a closed port of a live sandbox answers 502 and names the port", async () => {
    const reply = await readReply(await send(platform, sandbox().sandboxId, "/", { port: 8099 }));
    expect([reply.status, reply.headers.get("content-type"), reply.json]).toEqual([
      502,
      "application/json; charset=utf-8",
      { sandboxId: sandbox().sandboxId, message: "The sandbox is running but port is not open", port: 8099, code: 502 },
    ]);
  });

  test("a sandbox that never was, and one that was killed, are answered with 502 and their id", async () => {
    const never = `i${"0".repeat(19)}`;
    const reply = await readReply(await send(platform, never, "/", { port: 8000 }));
    expect([reply.status, reply.json]).toEqual([502, notFound(never)]);
    const killed = await Sandbox.create({ timeoutMs: 300_000 });
    await killed.kill();
    const gone = await readReply(await send(platform, killed.sandboxId, "/health"));
    expect([gone.status, gone.json]).toEqual([502, notFound(killed.sandboxId)]);
  });

  test("browsers that navigate get a page; scripts in browsers get JSON", async () => {
    const browser = { "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0", accept: "text/html,*/*;q=0.8" };
    // A plain request: fetch would add Sec-Fetch-Mode: cors, as scripts do.
    const page = await plainGet({ ...routing(8099), ...browser });
    expect([page.status, page.type]).toEqual([502, "text/html; charset=utf-8"]);
    for (const headers of [
      { ...browser, accept: "application/json" },
      { ...browser, "x-requested-with": "XMLHttpRequest" },
      { ...browser, "sec-fetch-mode": "cors" },
      { "user-agent": "node", accept: "*/*" },
    ]) {
      expect((await plainGet({ ...routing(8099), ...headers })).type).toBe("application/json; charset=utf-8");
    }
  });

  test("malformed routing headers and names are refused", async () => {
    const bad = await readReply(await send(platform, "Not_An_Id!", "/", { port: 8000 }));
    expect([bad.status, bad.text]).toEqual([400, "Invalid sandbox ID"]);
    expect(bad.headers.get("content-type")).toMatch(/^text\/plain/);
    const headers = { "e2b-sandbox-id": sandbox().sandboxId, "e2b-sandbox-port": "eighty" };
    const port = await readReply(await fetch(`${platform.sandboxUrl}/`, { headers }));
    expect(port.status).toBe(500);
    expect(port.text).toMatch(/^Unexpected error when routing request: invalid sandbox port/);
    const none = await readReply(await fetch(`${platform.sandboxUrl}/health`));
    expect(none.status).toBe(400);
    expect(none.headers.get("content-type")).toMatch(/^text\/plain/);
  });

  test("a request without a port header is envd's", async () => {
    const response = await fetch(`${platform.sandboxUrl}/health`, {
      headers: { "svc-sandbox-id": sandbox().sandboxId },
    });
    expect(response.status).toBe(204);
  });

  test("the edge's errors and preflights carry CORS", async () => {
    const preflight = { origin: "http://page.example", "access-control-request-method": "POST" };
    const answered = await send(platform, sandbox().sandboxId, "/", {
      port: 8099,
      method: "OPTIONS",
      headers: preflight,
    });
    expect(answered.status).toBeLessThan(300);
    expect(answered.headers.get("access-control-allow-origin")).toBe("*");
    for (const [id, port] of [["Not_An_Id!", 80] as const, [sandbox().sandboxId, 8099] as const]) {
      expect((await send(platform, id, "/", { port })).headers.get("access-control-allow-origin")).toBe("*");
    }
  });
});

describe("options of what is reachable", () => {
  test("private traffic needs the token on every port but envd's", async () => {
    const sandbox = await ownSandbox({ network: { allowPublicTraffic: false } });
    expect(sandbox.trafficAccessToken).toMatch(/\S{16,}/);
    await serve(sandbox, 8000);
    const without = await readReply(await send(platform, sandbox.sandboxId, "/", { port: 8000 }));
    expect([without.status, (without.json as { code: number }).code]).toEqual([403, 403]);
    const wrong = await send(platform, sandbox.sandboxId, "/", {
      port: 8000,
      headers: { "e2b-traffic-access-token": "no" },
    });
    expect(wrong.status).toBe(403);
    for (const name of ["e2b-traffic-access-token", "svc-traffic-access-token"]) {
      const headers = { [name]: sandbox.trafficAccessToken ?? "" };
      const response = await send(platform, sandbox.sandboxId, "/h", { port: 8000, headers });
      expect(response.status).toBe(200);
      expect(JSON.stringify(await response.json())).not.toContain(sandbox.trafficAccessToken);
    }
    expect((await sandbox.commands.run("echo fine")).stdout).toBe("fine\n");
  });

  test("the host name that servers see may be set, with the port in it", async () => {
    // oxlint-disable-next-line no-template-curly-in-string -- the placeholder of the wire contract
    const sandbox = await ownSandbox({ network: { maskRequestHost: "local.example:${PORT}" } });
    await serve(sandbox, 8000);
    const host = sandbox.getHost(8000);
    const reply = (await byHost(host, "/")) as { headers: Record<string, string> };
    expect(reply.headers).toMatchObject({ host: "local.example:8000", "x-forwarded-host": host });
  });

  test("a port of httpsPorts is reached over TLS, with any certificate", async () => {
    const sandbox = await ownSandbox({ network: { httpsPorts: [8443] } });
    await sandbox.files.write("/tmp/server.py", serverScript);
    await sandbox.commands.run(
      "cd /tmp && openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=me -keyout key.pem -out cert.pem 2>/dev/null && cat key.pem cert.pem > both.pem",
    );
    await sandbox.commands.run("python3 /tmp/server.py 8443 0.0.0.0 /tmp/both.pem", { background: true, timeoutMs: 0 });
    await sandbox.commands.run("until ss -Htln sport = :8443 | grep -q .; do sleep 0.05; done");
    const response = await send(platform, sandbox.sandboxId, "/over-tls", { port: 8443 });
    expect(await response.json()).toMatchObject({ path: "/over-tls" });
    expect((await sandbox.getInfo()).network).toMatchObject({ httpsPorts: [8443] });
  });

  test("a request in flight ends when the sandbox is killed", async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
    await serve(sandbox, 8000);
    const response = await send(platform, sandbox.sandboxId, "/forever", { port: 8000 });
    const reading = response.text().then(
      () => "ended",
      () => "cut",
    );
    await sandbox.kill();
    expect(await reading).toBe("cut");
    expect((await send(platform, sandbox.sandboxId, "/", { port: 8000 })).status).toBe(502);
  });
});

async function serve(sandbox: Sandbox, port: number): Promise<void> {
  await sandbox.files.write("/tmp/server.py", serverScript);
  await sandbox.commands.run(`python3 /tmp/server.py ${port} 0.0.0.0`, { background: true, timeoutMs: 0 });
  await sandbox.commands.run(`until ss -Htln sport = :${port} | grep -q .; do sleep 0.05; done`);
}

// A raw request, because fetch refuses to send another Host header.
async function byHost(host: string, path: string): Promise<unknown> {
  return JSON.parse((await plainGet({ host }, path)).text);
}

function plainGet(
  headers: Record<string, string>,
  path = "/",
): Promise<{ status: number; type: string; text: string }> {
  const { hostname, port } = new URL(platform.sandboxUrl);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      const { statusCode: status = 0 } = response;
      const type = response.headers["content-type"] ?? "";
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve({ status, type, text: Buffer.concat(chunks).toString("utf8") }));
    });
    request.on("error", reject);
    request.end();
  });
}

/** Sends all requests at once on one connection and reads until the connection is closed. */
function rawExchange(requests: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(platform.sandboxUrl);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(requests.join("")));
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", reject);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("utf8")));
  });
}
