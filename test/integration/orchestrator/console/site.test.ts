/** Requests to the console from elsewhere than its own page, and what its answers let a page do. */

import { request } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { newUuid } from "../../../../shared/ids.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { type Browser, newBrowser } from "./browser.ts";

let cluster: Cluster;
let browser: Browser;
beforeAll(async () => {
  cluster = await startCluster({ config: { consoleHosts: "console.example.com" } });
  browser = newBrowser(cluster);
  await browser.logIn(cluster.key);
});
afterAll(() => cluster.stop());

/** `fetch` does not let its caller choose the host. */
function statusAt(url: string, host: string, path: string, more: object = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { headers: { host, ...more }, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.once("error", reject);
    sent.end();
  });
}

test.each([
  ["another site's origin", { origin: "https://evil.example.com" }],
  ["a sandbox's origin", { origin: "http://8000-ibcdefghij.localhost:3002" }],
  ["an origin without a name", { origin: "null" }],
  ["no origin", { origin: undefined }],
  ["a page of another site", { "sec-fetch-site": "cross-site" }],
  ["a page of another host of the same site", { "sec-fetch-site": "same-site" }],
])("a change from %s is refused with the right cookie", async (_name, headers) => {
  const refused = await browser.ask("POST", "/console/api/v2/sandboxes", { headers, body: { templateID: "base" } });
  expect([refused.status, refused.body]).toEqual([403, expect.objectContaining({ error_code: "forbidden" })]);
  const login = await browser.ask("POST", "/console/login", { headers: { ...headers, "x-api-key": cluster.key } });
  expect([login.status, login.headers.getSetCookie()]).toEqual([403, []]);
});

test("a read by another site's page is refused with the right cookie, and no answer is for another origin", async () => {
  const refused = await browser.ask("GET", "/console/api/v2/sandboxes", {
    headers: { "sec-fetch-site": "cross-site" },
  });
  expect(refused.status).toBe(403);
  const answered = await browser.ask("GET", "/console/api/v2/sandboxes", {
    headers: { origin: "https://evil.example.com" },
  });
  expect(answered.status).toBe(200);
  for (const { headers } of [refused, answered]) expect(headers.get("access-control-allow-origin")).toBeNull();
});

/** The status of the answer to a request for a WebSocket; 101: there is one. */
function socketStatus(path: string, more: Readonly<Record<string, string>>): Promise<number> {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": Buffer.alloc(16).toString("base64"),
    cookie: browser.cookie ?? "",
    ...more,
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${cluster.url}${path}`, { headers, agent: false });
    sent.once("upgrade", (_answer, socket) => {
      socket.destroy();
      resolve(101);
    });
    sent.once("response", (answer) => {
      answer.once("error", () => undefined);
      resolve(answer.statusCode ?? 0);
      sent.destroy();
    });
    sent.once("error", reject);
    sent.end();
  });
}

test("no page gets a WebSocket with the right cookie: one of another site is refused, and the console has none", async () => {
  const sandbox = await browser.ask("POST", "/console/api/v2/sandboxes", { body: { templateID: "base" } });
  const { sandboxID: id } = sandbox.body as { sandboxID: string };
  const evil = { origin: "https://evil.example.com", "sec-fetch-site": "cross-site", "sec-fetch-mode": "websocket" };
  const own = { origin: cluster.url, "sec-fetch-site": "same-origin", "sec-fetch-mode": "websocket" };
  for (const path of ["events", "session", `sandboxes/${id}/envd/files?path=%2Fetc%2Fhostname`]) {
    expect(await socketStatus(`/console/api/${path}`, evil), path).toBe(403);
    expect(await socketStatus(`/console/api/${path}`, own), path).not.toBe(101);
  }
});

test("the console answers at addresses, localhost and the names of its setting alone", async () => {
  const { port } = new URL(cluster.url);
  const path = "/console/api/session";
  for (const host of ["127.0.0.1", "[::1]", "localhost", "Console.example.com"])
    expect(await statusAt(cluster.url, `${host}:${port}`, path), host).toBe(200);
  for (const host of ["rebound.example.org", "8000-ibcdefghij.localhost", "localhost.evil.example.com"])
    expect(await statusAt(cluster.url, `${host}:${port}`, path), host).toBe(403);
  expect(await statusAt(cluster.url, "rebound.example.org", "/health"), "the API itself").toBe(204);
});

test("a header that a page can send itself does not say at which host name it is, also behind a proxy", async () => {
  const behind = await startCluster({ config: { trustedProxies: "127.0.0.1,::1" } });
  onTestFinished(() => behind.stop());
  const forwarded = { "x-forwarded-host": "localhost" };
  expect(await statusAt(behind.url, "rebound.example.org", "/console/api/session", forwarded)).toBe(403);
  expect(await statusAt(behind.url, "localhost", "/console/api/session", forwarded)).toBe(200);
});

test("every answer forbids foreign scripts, frames and guesses of its type", async () => {
  for (const path of ["/console/", "/console/api/session", "/console/api/none", "/console/assets/none.js"]) {
    const { headers } = await browser.ask("GET", path);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy, path).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy, path).toMatch(/frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/);
    expect(policy, path).not.toContain("unsafe");
    expect([headers.get("x-content-type-options"), headers.get("referrer-policy")], path).toEqual([
      "nosniff",
      "no-referrer",
    ]);
    expect([headers.get("cross-origin-opener-policy"), headers.get("cross-origin-resource-policy")], path).toEqual([
      "same-origin",
      "same-origin",
    ]);
  }
});

test("a file of another version is not there, and no cache keeps that it is not", async () => {
  const { status, headers } = await browser.ask("GET", "/console/assets/xterm-old.js");
  expect([status, headers.get("cache-control")]).toEqual([404, "no-store"]);
});

test("a change is taken through a proxy that adds the scheme's port to the host", async () => {
  const headers = { origin: "http://console.example.com", "x-api-key": cluster.key };
  const asked = (host: string) =>
    new Promise<number>((resolve, reject) => {
      const sent = request(`${cluster.url}/console/login`, { method: "POST", headers: { ...headers, host } }, (got) => {
        got.resume();
        resolve(got.statusCode ?? 0);
      });
      sent.once("error", reject);
      sent.end();
    });
  expect(await asked("console.example.com:443")).toBe(403);
  expect(await asked("console.example.com:80")).toBe(200);
});

/** Every route that changes something, with ids that fit its path. A route of the future is among them as soon as a contract has it. */
function changingRoutes(ids: Readonly<Record<string, string>>): readonly (readonly [method: string, path: string])[] {
  return Object.values<Route>(publicApi)
    .filter(({ method }) => method !== "GET")
    .map(({ method, path }) => [method, path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? newUuid())]);
}

test("a viewer's session changes nothing, by whichever route, and reaches no program and no file of a sandbox", async () => {
  const made = await cluster.ask("POST", "/api-keys", { body: { name: "viewer", scopes: ["read"] } });
  const viewer = newBrowser(cluster);
  await viewer.logIn((made.body as { key: string }).key);
  const created = await browser.ask("POST", "/console/api/v2/sandboxes", { body: { templateID: "base" } });
  const { sandboxID: id } = created.body as { sandboxID: string };
  const volume = await browser.ask("POST", "/console/api/volumes", { body: { name: "of-the-viewer" } });
  const { volumeID } = volume.body as { volumeID: string };
  const ids = { sandboxID: id, templateID: "base", volumeID, nodeID: "node-1", hash: "a".repeat(64) };
  const unserved: string[] = [];
  let refused = 0;
  for (const [method, path] of [
    ...changingRoutes(ids),
    ["POST", `/sandboxes/${id}/envd/process.Process/Start`],
    ["POST", `/sandboxes/${id}/envd/process.Process/List`],
    ["GET", `/sandboxes/${id}/envd/files?path=%2Fetc%2Fpasswd`],
    ["POST", `/sandboxes/${id}/envd/files?path=%2Ftmp%2Fa`],
  ] as const) {
    const answer = await viewer.ask(method, `/console/api${path}`, method === "GET" ? {} : { body: {} });
    // The console's API has neither the routes of other credentials nor those that are gone.
    if (answer.status === 404 && answer.text.includes("no route")) {
      unserved.push(`${method} ${path}`);
      continue;
    }
    expect(answer.status, `${method} ${path} ${answer.text}`).toBe(403);
    refused++;
  }
  expect(refused, `not served: ${unserved.join(", ")}`).toBeGreaterThanOrEqual(60);
  expect((await viewer.ask("GET", `/console/api/sandboxes/${id}`)).status).toBe(200);
  expect((await browser.ask("GET", `/console/api/sandboxes/${id}`)).body).toMatchObject({ state: "running" });
});

test("no answer has a token of a sandbox or volume, whose public routes have one", async () => {
  const created = await browser.ask("POST", "/console/api/v2/sandboxes", { body: { templateID: "base" } });
  const { sandboxID: id } = created.body as { sandboxID: string };
  const read = await browser.ask("GET", `/console/api/sandboxes/${id}`);
  for (const { text } of [created, read]) expect(text).not.toContain("AccessToken");
  expect((await cluster.ask("GET", `/sandboxes/${id}`)).text).toContain("envdAccessToken");
  const volume = await browser.ask("POST", "/console/api/volumes", { body: { name: "of-the-console" } });
  expect(volume.status, volume.text).toBeLessThan(300);
  expect(volume.body).not.toHaveProperty("token");
  const { volumeID } = volume.body as { volumeID: string };
  expect((await cluster.ask("GET", `/volumes/${volumeID}`)).body).toHaveProperty("token");
  // The router decodes the path before it finds the route.
  for (const path of ["volumes", "%76olumes"]) {
    const found = await browser.ask("GET", `/console/api/${path}/${volumeID}`);
    expect([found.status, found.body], path).toEqual([200, expect.not.objectContaining({ token: expect.anything() })]);
  }
});

test("the setting switches the console off", async () => {
  const off = await startCluster({ config: { console: "off" } });
  onTestFinished(() => off.stop());
  for (const path of ["/console", "/console/", "/console/api/session"])
    expect((await newBrowser(off).ask("GET", path)).status, path).toBe(404);
});

test("a listener of its own serves the console alone, with the same checks, and the port of the API serves none", async () => {
  const moved = await startCluster({ config: { consoleListen: "127.0.0.1:0" } });
  onTestFinished(() => moved.stop());
  const { origin } = new URL(moved.consoleUrl ?? "");
  expect(origin).not.toBe(new URL(moved.url).origin);
  const there = newBrowser({ url: origin });
  expect((await there.logIn(moved.key)).status).toBe(200);
  expect((await there.ask("GET", "/console/api/v2/sandboxes")).status).toBe(200);
  for (const path of ["/v2/sandboxes", "/health", "/docs"])
    expect((await there.ask("GET", path)).status, path).toBe(404);
  for (const path of ["/console/", "/console/api/session", "/console/link"])
    expect((await newBrowser(moved).ask("GET", path)).status, path).toBe(404);
  const { port } = new URL(origin);
  expect(await statusAt(origin, `rebound.example.org:${port}`, "/console/api/session")).toBe(403);
  const fromTheApi = await there.ask("POST", "/console/logout", { headers: { origin: moved.url } });
  expect([fromTheApi.status, fromTheApi.headers.get("access-control-allow-origin")]).toEqual([403, null]);
});
