import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { AutoResumeResult, EdgeRoute } from "../../../orchestrator/edge/sandbox-lookup.ts";
import { fileSignature } from "../../../shared/ids.ts";
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

const browser = { "user-agent": "Mozilla/5.0 Chrome/130", accept: "text/html,*/*", "sec-fetch-mode": "navigate" };

let door: FrontDoor;
let route: EdgeRoute;
let envd: Backend;
const envdSaw: string[] = [];
beforeAll(async () => {
  door = await openFrontDoor();
  route = door.add();
  envd = await httpBackend(
    route.address,
    (request, response) => {
      envdSaw.push(`${request.method} ${request.url}`);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(request.headers));
    },
    ENVD_PORT,
  );
});
afterAll(async () => {
  await door.stop();
  await envd.close();
});

const url = (path = "/") => `http://127.0.0.1:${door.port}${path}`;

async function userServer(): Promise<Backend> {
  const backend = await httpBackend(route.address, (request, response) => {
    response.setHeader("x-seen", JSON.stringify(request.headers));
    response.end(request.method);
  });
  onTestFinished(() => backend.close());
  return backend;
}

describe("finding the sandbox", () => {
  test.each(["svc", "e2b"])("by %s headers, envd's port when none is given", async (family) => {
    const response = await fetch(url("/health"), { headers: { [`${family}-sandbox-id`]: route.sandboxId } });
    const seen = (await response.json()) as Record<string, string>;
    expect(seen["host"]).toBe(`127.0.0.1:${door.port}`);
    expect(Object.keys(seen).filter((name) => name.includes("sandbox"))).toEqual([]);
  });

  test.each(["localhost:3002", "sbx.example.com", "other.domain"])("by host name under %s", async (domain) => {
    const backend = await userServer();
    const host = `${backend.port}-${route.sandboxId}.${domain}`;
    const answer = await ask(door.port, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 200/);
  });

  test("by the signature of a file URL alone", async () => {
    const other = door.add();
    onTestFinished(() => void door.routes.delete(other.sandboxId));
    const signature = fileSignature({
      path: "a b",
      operation: "read",
      username: "",
      token: route.envdAccessToken,
      expiration: "1",
    });
    const query = new URLSearchParams({ path: "a b", signature, signature_expiration: "1" }).toString();
    const response = await fetch(url(`/files?${query}`));
    expect(response.status).toBe(200);
    expect(envdSaw.at(-1)).toBe(`GET /files?${query}`);
    const wrong = await fetch(url(`/files?${query.replace("a+b", "c")}`));
    expect([wrong.status, await wrong.json()]).toEqual([401, { code: 401, message: "invalid signature" }]);
  });

  test("but an address with too many wrong signatures has to wait, except for one that was right before", async () => {
    const own = await openFrontDoor();
    onTestFinished(() => own.stop());
    own.routes.set(route.sandboxId, route);
    const of = (token: string, path: string) => {
      const signature = fileSignature({ path, operation: "read", username: "", token });
      return `http://127.0.0.1:${own.port}/files?${new URLSearchParams({ path, signature }).toString()}`;
    };
    expect((await fetch(of(route.envdAccessToken, "x"))).status).toBe(200);
    let refused: Response | undefined;
    // Some come back while they are asked.
    for (let index = 0; index < 2_000 && refused === undefined; index += 20) {
      const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => fetch(of("wrong", `${index + at}`))));
      refused = answers.find(({ status }) => status === 429);
      expect(answers.every(({ status }) => status === 401 || status === 429)).toBe(true);
    }
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused?.json()).toEqual({ code: 429, message: "Too many wrong signatures came from this address" });
    expect((await fetch(of(route.envdAccessToken, "x"))).status).toBe(200);
  });

  test.each([
    ["", 400, "missing header"],
    ["E2b-Sandbox-Port: 80\r\n", 400, "missing header"],
    ["E2b-Sandbox-Id: ../x\r\n", 400, "Invalid sandbox ID"],
    [
      "E2b-Sandbox-Id: iabc\r\nE2b-Sandbox-Port: http\r\n",
      500,
      /^Unexpected error when routing request: invalid sandbox port/,
    ],
  ])("%j is plain text with CORS", async (headers, status, text) => {
    const answer = await ask(door.port, `GET / HTTP/1.1\r\nHost: localhost\r\n${headers}Connection: close\r\n\r\n`);
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toContain("Content-Type: text/plain; charset=utf-8");
    expect(head).toContain("Access-Control-Allow-Origin: *");
    expect(body).toMatch(text);
  });

  test("an unknown sandbox is 502: JSON for scripts, a page for people, with CORS for both", async () => {
    const headers = { "e2b-sandbox-id": "inobody" };
    const script = await fetch(url(), { headers });
    expect([script.status, script.headers.get("access-control-allow-origin")]).toEqual([502, "*"]);
    expect(script.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await script.json()).toEqual({ sandboxId: "inobody", message: "The sandbox was not found", code: 502 });
    const answer = await ask(
      door.port,
      `GET / HTTP/1.1\r\nHost: 80-inobody.localhost\r\nUser-Agent: ${browser["user-agent"]}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 502 Bad Gateway\r\n/);
    expect(answer).toMatch(/\r\n\r\n<html.*Sandbox Not Found.*inobody.*<\/html>$/s);
  });

  test.each(["starting", "pausing", "paused", "killing"] as const)(
    "a sandbox that is %s is not found",
    async (state) => {
      const other = door.add({ state });
      const response = await fetch(url(), { headers: routed(other, 80) });
      expect([response.status, await response.json()]).toMatchObject([502, { message: "The sandbox was not found" }]);
    },
  );

  test.each([0, 65_536, 99_999])("port %i is closed", async (port) => {
    const response = await fetch(url(), { headers: routed(route, port) });
    expect(await response.json()).toMatchObject({ message: "The sandbox is running but port is not open", port });
  });
});

describe("envd's internal routes", () => {
  test.each(["/init", "/%69nit", "//init", "/files/../init", "/connect?port=1", "/logs", "/ca-bundle"])(
    "%s is refused in every way of asking",
    async (path) => {
      const before = envdSaw.length;
      for (const method of ["GET", "POST", "OPTIONS", "PUT"]) {
        const text = `${method} ${path} HTTP/1.1\r\n${routing(route, ENVD_PORT)}Access-Control-Request-Method: POST\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
        expect(await ask(door.port, text)).toMatch(/^HTTP\/1.1 404 Not Found\r\n(.*\r\n)*\r\n{"sandboxId"/);
      }
      const upgrade = `GET ${path} HTTP/1.1\r\n${routing(route, ENVD_PORT)}Connection: Upgrade\r\nUpgrade: svc-tcp\r\n\r\n`;
      expect(await ask(door.port, upgrade)).toMatch(/^HTTP\/1.1 404/);
      const unknown = await fetch(url("/init"), { headers: { "e2b-sandbox-id": "inobody" } });
      expect(unknown.status).toBe(404);
      expect(envdSaw.length).toBe(before);
    },
  );

  test("are closed through a port in another spelling", async () => {
    const host = `049983-${route.sandboxId}.localhost`;
    expect(await ask(door.port, `GET /init HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 404/,
    );
  });

  test("are paths like any other on a user's own port", async () => {
    const backend = await userServer();
    expect((await fetch(url("/init"), { headers: routed(route, backend.port) })).status).toBe(200);
  });
});

describe("preflights", () => {
  const preflight = {
    "access-control-request-method": "PUT",
    "access-control-request-headers": "x-mine",
    origin: "http://p",
  };

  test("to a live port are the server's to answer", async () => {
    const backend = await userServer();
    const response = await fetch(url(), {
      method: "OPTIONS",
      headers: { ...routed(route, backend.port), ...preflight },
    });
    expect(await response.text()).toBe("OPTIONS");
  });

  test("are answered when the sandbox cannot", async () => {
    const parked = await rawBackend(route.address, () => undefined);
    await parked.close();
    for (const headers of [routed(route, parked.port), { "e2b-sandbox-id": "inobody" }, {}]) {
      const response = await fetch(url(), { method: "OPTIONS", headers: { ...headers, ...preflight } });
      expect([response.status, await response.text()]).toEqual([204, ""]);
      expect(response.headers.get("access-control-allow-headers")).toBe("x-mine");
      expect(response.headers.get("access-control-allow-methods")).toContain("PUT");
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
    }
  });
});

describe("private traffic", () => {
  let guarded: EdgeRoute;
  let backend: Backend;
  beforeAll(async () => {
    guarded = door.add({ allowPublicTraffic: false, trafficAccessToken: "traffic-secret" });
    backend = await httpBackend(guarded.address, (request, response) => response.end(JSON.stringify(request.headers)));
  });
  afterAll(() => backend.close());

  test("needs its token, and the refusal names the header", async () => {
    const missing = await fetch(url(), { headers: routed(guarded, backend.port) });
    expect([missing.status, await missing.json()]).toMatchObject([
      403,
      { code: 403, message: expect.stringMatching(/'e2b-traffic-access-token' is missing$/) as string },
    ]);
    for (const name of ["e2b-traffic-access-token", "svc-traffic-access-token"]) {
      const wrong = await fetch(url(), { headers: { ...routed(guarded, backend.port), [name]: "x" } });
      expect([wrong.status, await wrong.json()]).toMatchObject([
        403,
        { message: expect.stringContaining(`'${name}' is invalid`) as string },
      ]);
      const right = await fetch(url(), { headers: { ...routed(guarded, backend.port), [name]: "traffic-secret" } });
      expect(right.status).toBe(200);
      expect(JSON.stringify(await right.json())).not.toContain("traffic");
    }
  });

  test("reveals nothing about ports to a visitor without the token", async () => {
    expect((await fetch(url(), { headers: routed(guarded, 1) })).status).toBe(403);
    expect((await fetch(url(), { headers: routed(guarded, 99_999) })).status).toBe(403);
  });

  test("does not concern envd, which has its own token", async () => {
    const response = await fetch(url(), { headers: routed(guarded, ENVD_PORT) });
    expect(response.status).toBe(502);
  });

  test("answers a browser's preflight, which cannot carry a token", async () => {
    const response = await fetch(url(), {
      method: "OPTIONS",
      headers: { ...routed(guarded, backend.port), "access-control-request-method": "GET" },
    });
    expect(response.status).toBe(204);
  });

  test("without a token to compare with is closed to all", async () => {
    const broken = door.add({ allowPublicTraffic: false, address: guarded.address });
    const response = await fetch(url(), {
      headers: { ...routed(broken, backend.port), "e2b-traffic-access-token": "" },
    });
    expect(response.status).toBe(403);
  });
});

describe("what the server sees", () => {
  test("is the masked host, with the original beside it, but never for envd", async () => {
    const masked = door.add({ address: route.address, maskRequestHost: "app.internal:${PORT}" });
    const backend = await userServer();
    const response = await fetch(url(), { headers: { ...routed(masked, backend.port), "x-forwarded-host": "forged" } });
    const seen = JSON.parse(response.headers.get("x-seen") ?? "{}") as Record<string, string>;
    expect(seen).toMatchObject({ host: `app.internal:${backend.port}`, "x-forwarded-host": `127.0.0.1:${door.port}` });
    const plain = (await (await fetch(url("/x"), { headers: routed(masked, ENVD_PORT) })).json()) as Record<
      string,
      string
    >;
    expect([plain["host"], plain["x-forwarded-host"]]).toEqual([`127.0.0.1:${door.port}`, undefined]);
  });

  test("is envd's token only when it is envd", async () => {
    const backend = await userServer();
    const headers = { "x-access-token": route.envdAccessToken };
    const user = await fetch(url(), { headers: { ...routed(route, backend.port), ...headers } });
    expect(user.headers.get("x-seen")).not.toContain(route.envdAccessToken);
    const envdResponse = await fetch(url("/y"), { headers: { ...routed(route, ENVD_PORT), ...headers } });
    expect(await envdResponse.json()).toMatchObject(headers);
  });
});

test.each([true, false])("a TLS server on an https port is reached, same host %s", async (sameHost) => {
  const { cert, key } = selfSigned();
  const tls = createTlsServer({ cert, key }, (request, response) => {
    response.end(`${request.url} ${(request.socket as import("node:tls").TLSSocket).servername || "no name"}`);
  });
  tls.listen(0, route.address);
  await once(tls, "listening");
  onTestFinished(() => {
    tls.closeAllConnections();
    tls.close();
  });
  const { port } = tls.address() as AddressInfo;
  const other = door.add({ address: route.address, sameHost, httpsPorts: [port] });
  expect(await (await fetch(url("/secret"), { headers: routed(other, port) })).text()).toBe("/secret localhost");
  const plain = door.add({ address: route.address, sameHost });
  expect((await fetch(url("/"), { headers: routed(plain, port) })).status).toBeGreaterThanOrEqual(400);
  const noTls = await userServer();
  const wrong = door.add({ address: route.address, sameHost, httpsPorts: [noTls.port] });
  expect((await fetch(url("/"), { headers: routed(wrong, noTls.port) })).status).toBe(502);
});

describe("a server on the sandbox's loopback", () => {
  test.each([true, false])("is reached through envd's tunnel, same host %s", async (sameHost) => {
    const inside = door.add({ sameHost });
    const asked: string[] = [];
    const tunnel = await httpBackend(inside.address, (_request, response) => response.writeHead(404).end(), ENVD_PORT);
    onTestFinished(() => tunnel.close());
    tunnel.server.on("upgrade", (request: import("node:http").IncomingMessage, socket: import("node:net").Socket) => {
      asked.push(`${request.method} ${request.url} ${String(request.headers["svc-node-token"])}`);
      if (request.url !== "/connect?port=8123") {
        socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        return;
      }
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: svc-tcp\r\n\r\n");
      socket.on("data", (chunk: Buffer) => {
        if (chunk.toString().endsWith("\r\n\r\n")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ninside");
      });
    });
    const control = door.nodeRoutes.get(inside.sandboxId)?.controlToken;
    const answers = [];
    for (let round = 0; round < 3; round++)
      answers.push(await (await fetch(url(), { headers: routed(inside, 8123) })).text());
    expect(answers).toEqual(["inside", "inside", "inside"]);
    expect(asked).toEqual([`POST /connect?port=8123 ${control}`]);
    const closed = await fetch(url(), { headers: routed(inside, 8124) });
    expect(await closed.json()).toMatchObject({ message: "The sandbox is running but port is not open" });
  });
});

describe("the node's proxy", () => {
  test("refuses requests without the node's token", async () => {
    const port = Number(new URL(door.nodeProxyUrl).port);
    for (const token of ["", "Svc-Node-Token: wrong\r\n"]) {
      const text = `GET / HTTP/1.1\r\nHost: x\r\n${token}Svc-Sandbox-Id: ${route.sandboxId}\r\nSvc-Execution-Id: ${route.executionId}\r\nSvc-Sandbox-Port: 80\r\nConnection: close\r\n\r\n`;
      expect(await ask(port, text)).toMatch(/^HTTP\/1.1 401 \r\nsvc-proxy-error: unauthorized\r\n/);
    }
  });

  test.each([
    ["the edge knows", { held: true }, {}],
    ["only the node knows", { sameHost: false }, { held: true }],
  ])("a sandbox that stands still, as %s, answers 507 and says why", async (_who, ofEdge, ofNode) => {
    const still = door.add(ofEdge);
    const { executionId, address } = still;
    door.nodeRoutes.set(still.sandboxId, { executionId, address, controlToken: "c", ...ofNode });
    const answer = await fetch(url(), { headers: routed(still, 8080) });
    expect(answer.status).toBe(507);
    expect(await answer.json()).toMatchObject({
      sandboxId: still.sandboxId,
      code: 507,
      message: expect.stringMatching(/stands still: its node's disk is short/) as unknown,
    });
  });

  test("refuses an execution it does not have, and the edge looks again", async () => {
    const stale = door.add({ sameHost: false });
    const backend = await httpBackend(stale.address, (_request, response) => response.end("new"));
    onTestFinished(() => backend.close());
    door.nodeRoutes.set(stale.sandboxId, { executionId: "newer", address: stale.address, controlToken: "c" });
    const gone = await fetch(url(), { headers: routed(stale, backend.port) });
    expect([gone.status, await gone.json()]).toMatchObject([502, { message: "The sandbox was not found" }]);

    let lookups = 0;
    const newer = { ...stale, executionId: "newer" };
    const original = door.routes.get.bind(door.routes);
    door.routes.get = (id) => (id === stale.sandboxId ? (lookups++ === 0 ? stale : newer) : original(id));
    onTestFinished(() => void (door.routes.get = original));
    expect(await (await fetch(url(), { headers: routed(stale, backend.port) })).text()).toBe("new");
  });

  test("that is not there leaves a sandbox of another host unreachable, and one of this host as it is", async () => {
    const nowhere = { proxyUrl: "http://127.0.0.1:1", address: route.address };
    const far = await fetch(url(), { headers: routed(door.add({ ...nowhere, sameHost: false }), 80) });
    expect([far.status, await far.json()]).toMatchObject([
      502,
      { message: "The sandbox cannot be reached at the moment" },
    ]);
    const backend = await userServer();
    const near = door.add({ ...nowhere, sameHost: true });
    expect((await fetch(url(), { headers: routed(near, backend.port) })).status).toBe(200);
    const closed = await fetch(url(), { headers: routed(near, 1) });
    expect(await closed.json()).toMatchObject({ message: "The sandbox is running but port is not open" });
  });
});

test("more connections than the limit are refused, WebSockets among them, and counted down again", async () => {
  const small = await openFrontDoor({ maxConnectionsPerSandbox: 2 });
  onTestFinished(() => small.stop());
  const one = small.add();
  const backend = await httpBackend(one.address, (request, response) => {
    if (request.url === "/hold") response.write("held");
    else response.end("ok");
  });
  onTestFinished(() => backend.close());
  const holders = [];
  backend.server.on("upgrade", (_request, socket: import("node:net").Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nheld");
  });
  for (const more of ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n"]) {
    const client = await RawClient.open(small.port);
    const head = `GET /hold HTTP/1.1\r\n${routing(one, backend.port)}${more}\r\n`;
    await client.send(head).until((text) => text.includes("held"));
    holders.push(client);
  }
  const ok = () => fetch(`http://127.0.0.1:${small.port}/`, { headers: routed(one, backend.port) });
  const refused = await ok();
  expect([refused.status, await refused.json()]).toEqual([
    429,
    { sandboxId: one.sandboxId, message: "Too many connections to the sandbox", connectionLimit: 2, code: 429 },
  ]);
  holders[0]?.destroy();
  await expect.poll(async () => (await ok()).status).toBe(200);
  holders[1]?.destroy();
});

test.each<[AutoResumeResult | "running", number, string]>([
  ["running", 200, "resumed"],
  [{ is: "not_found" }, 502, "The sandbox was not found"],
  [{ is: "denied", message: "wrong token" }, 403, "wrong token"],
  [{ is: "transitioning" }, 409, "The sandbox is still transitioning"],
  [{ is: "limited", message: "too many" }, 429, "too many"],
])("a request for a paused sandbox whose auto-resume gives %o is answered with %i", async (result, status, text) => {
  const asked: unknown[] = [];
  const sleepy = await openFrontDoor({
    autoResume: async (sandboxId, port, tokens) => {
      asked.push([sandboxId, port, tokens]);
      return result === "running" ? { is: "running", route: { ...paused, state: "running" } } : result;
    },
  });
  onTestFinished(() => sleepy.stop());
  const paused = sleepy.add({ state: "paused" });
  const received: string[] = [];
  const backend = await httpBackend(paused.address, (request, response) => {
    received.push(...Object.keys(request.headers));
    response.end("resumed");
  });
  onTestFinished(() => backend.close());
  const tokens = { "e2b-traffic-access-token": "wrong", "svc-traffic-access-token": "t", "x-access-token": "e" };
  const headers = { ...routed(paused, backend.port), ...tokens };
  const response = await fetch(`http://127.0.0.1:${sleepy.port}/`, { headers });
  expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(text)]);
  expect(asked).toEqual([
    [paused.sandboxId, backend.port, { trafficAccessTokens: ["wrong", "t"], envdAccessToken: "e" }],
  ]);
  expect(received.filter((name) => name.includes("traffic"))).toEqual([]);
});

test("a request that never ends its head does not stop the others", async () => {
  const slow = await RawClient.open(door.port);
  slow.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
  const backend = await userServer();
  expect((await fetch(url(), { headers: routed(route, backend.port) })).status).toBe(200);
  slow.send(
    `y\r\nE2b-Sandbox-Id: ${route.sandboxId}\r\nE2b-Sandbox-Port: ${backend.port}\r\nConnection: close\r\n\r\n`,
  );
  expect(await slow.toEnd()).toMatch(/^HTTP\/1.1 200/);
});

test("an agent that keeps its connections may mix sandboxes on one of them", async () => {
  const other = door.add();
  const [mine, theirs] = [
    await userServer(),
    await httpBackend(other.address, (_request, response) => response.end("theirs")),
  ];
  onTestFinished(() => theirs.close());
  const client = await RawClient.open(door.port);
  await client.send(`GET / HTTP/1.1\r\n${routing(route, mine.port)}\r\n`).until((text) => text.endsWith("GET"));
  await client.send(`GET / HTTP/1.1\r\n${routing(other, theirs.port)}\r\n`).until((text) => text.endsWith("theirs"));
  const { port } = new URL(url());
  expect(port).toBe(String(door.port));
  await client
    .send(`POST / HTTP/1.1\r\n${routing(route, mine.port)}Content-Length: 1\r\n\r\nx`)
    .until((text) => text.endsWith("POST"));
  client.destroy();
});

function selfSigned(): { cert: string; key: string } {
  const directory = mkdtempSync(join(tmpdir(), "edge-tls-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      key,
      "-out",
      cert,
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
    ],
    { stdio: "ignore" },
  );
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}
