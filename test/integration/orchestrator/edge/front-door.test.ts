/**
 * The edge finds the sandbox and port of a request and checks that the request may go there: ids, signatures, internal
 * routes, preflights, private traffic.
 */

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { fileSignature } from "../../../../shared/ids.ts";
import { ask } from "../../../support/peers/raw-client.ts";
import { echoing } from "./answering.ts";
import {
  type Backend,
  ENVD_PORT,
  type FrontDoor,
  httpBackend,
  openFrontDoor,
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

describe("finding the sandbox", () => {
  test.each(["svc", "e2b"])("works by %s headers, with envd's port when none is given", async (family) => {
    const response = await fetch(url("/health"), { headers: { [`${family}-sandbox-id`]: route.sandboxId } });
    const seen = (await response.json()) as Record<string, string>;
    expect(seen["host"]).toBe(`127.0.0.1:${door.port}`);
    expect(Object.keys(seen).filter((name) => name.includes("sandbox"))).toEqual([]);
  });

  test.each(["localhost:3002", "sbx.example.com", "other.domain"])("works by host name under %s", async (domain) => {
    const backend = await echoing(route.address);
    const host = `${backend.port}-${route.sandboxId}.${domain}`;
    const answer = await ask(door.port, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 200/);
  });

  test("needs only the signature of a file URL", async () => {
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

  test("is refused to an address with too many wrong signatures, except by a signature that was right before", async () => {
    const own = await openFrontDoor();
    onTestFinished(() => own.stop());
    own.routes.set(route.sandboxId, route);
    const of = (token: string, path: string) => {
      const signature = fileSignature({ path, operation: "read", username: "", token });
      return `http://127.0.0.1:${own.port}/files?${new URLSearchParams({ path, signature }).toString()}`;
    };
    expect((await fetch(of(route.envdAccessToken, "x"))).status).toBe(200);
    let refused: Response | undefined;
    // The limit of wrong signatures refills somewhat while the test sends its requests.
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
    const backend = await echoing(route.address);
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
    const backend = await echoing(route.address);
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

  test("is refused to all when the route has no token", async () => {
    const broken = door.add({ allowPublicTraffic: false, address: guarded.address });
    const response = await fetch(url(), {
      headers: { ...routed(broken, backend.port), "e2b-traffic-access-token": "" },
    });
    expect(response.status).toBe(403);
  });
});

describe("what the server sees", () => {
  test("is the masked host, and the original one in X-Forwarded-Host, but never for envd", async () => {
    const masked = door.add({ address: route.address, maskRequestHost: "app.internal:${PORT}" });
    const backend = await echoing(route.address);
    const response = await fetch(url(), { headers: { ...routed(masked, backend.port), "x-forwarded-host": "forged" } });
    const seen = JSON.parse(response.headers.get("x-seen") ?? "{}") as Record<string, string>;
    expect(seen).toMatchObject({ host: `app.internal:${backend.port}`, "x-forwarded-host": `127.0.0.1:${door.port}` });
    const plain = (await (await fetch(url("/x"), { headers: routed(masked, ENVD_PORT) })).json()) as Record<
      string,
      string
    >;
    expect([plain["host"], plain["x-forwarded-host"]]).toEqual([`127.0.0.1:${door.port}`, undefined]);
  });

  test("includes envd's token only when the server is envd", async () => {
    const backend = await echoing(route.address);
    const headers = { "x-access-token": route.envdAccessToken };
    const user = await fetch(url(), { headers: { ...routed(route, backend.port), ...headers } });
    expect(user.headers.get("x-seen")).not.toContain(route.envdAccessToken);
    const envdResponse = await fetch(url("/y"), { headers: { ...routed(route, ENVD_PORT), ...headers } });
    expect(await envdResponse.json()).toMatchObject(headers);
  });
});
