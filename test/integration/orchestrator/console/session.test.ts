/** Sessions of the console: how they begin, what they may do, and what ends them. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { newBrowser } from "./browser.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

async function makeKey(scopes?: readonly string[]): Promise<{ id: string; key: string }> {
  const made = await cluster.ask("POST", "/api-keys", { body: { name: "of a person", ...(scopes ? { scopes } : {}) } });
  return made.body as { id: string; key: string };
}

test("a key is exchanged for a cookie that scripts cannot read, and the database holds neither", async () => {
  const browser = newBrowser(cluster);
  const answer = await browser.logIn(cluster.key);
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({ kind: "key", project: { name: "Test Project" } });
  const [cookie = ""] = answer.headers.getSetCookie().slice(-1);
  expect(cookie).toMatch(/^svc_console_\d+=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict; Max-Age=604800$/);
  const value = cookie.slice(cookie.indexOf("=") + 1, cookie.indexOf(";"));
  expect(JSON.stringify(await cluster.database.stored())).not.toContain(value);
  expect((await browser.ask("GET", "/console/api/v2/sandboxes")).status).toBe(200);
});

test("behind a proxy with TLS the cookie has the prefix that no other host can set", async () => {
  const behind = await startCluster({ config: { trustedProxies: "127.0.0.1,::1" } });
  onTestFinished(() => behind.stop());
  const browser = newBrowser(behind);
  const answer = await browser.ask("POST", "/console/login", {
    headers: { "x-api-key": behind.key, "x-forwarded-proto": "https" },
  });
  const [cookie] = answer.headers.getSetCookie().slice(-1);
  expect(cookie).toMatch(/^__Host-svc_console=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=604800$/);
});

test("a session ends with the revocation of its key, before the revocation is answered", async () => {
  const { id, key } = await makeKey();
  const browser = newBrowser(cluster);
  await browser.logIn(key);
  expect((await browser.ask("GET", "/console/api/templates")).status).toBe(200);
  expect((await cluster.ask("DELETE", `/api-keys/${id}`)).status).toBe(204);
  const refused = await browser.ask("GET", "/console/api/templates");
  expect([refused.status, refused.body]).toEqual([401, expect.objectContaining({ error_code: "unauthorized" })]);
  expect((await browser.ask("GET", "/console/api/session")).body).toMatchObject({ kind: "none" });
});

test("a change of the key's scopes changes what its session may do", async () => {
  const { id, key } = await makeKey();
  const browser = newBrowser(cluster);
  await browser.logIn(key);
  await cluster.ask("PATCH", `/api-keys/${id}`, { body: { name: "of a person", scopes: ["read"] } });
  const refused = await browser.ask("POST", "/console/api/v2/sandboxes", { body: { templateID: "base" } });
  expect([refused.status, refused.body]).toEqual([
    403,
    { code: 403, error_code: "forbidden", message: "this API key lacks the scope 'sandboxes'" },
  ]);
});

test("log-out ends the session also for a copy of its cookie", async () => {
  const browser = newBrowser(cluster);
  await browser.logIn(cluster.key);
  const copy = newBrowser(cluster);
  copy.cookie = browser.cookie;
  const answer = await browser.ask("POST", "/console/logout");
  expect([answer.status, answer.headers.getSetCookie()[0]]).toEqual([204, expect.stringMatching(/=; .*Max-Age=0$/)]);
  expect((await copy.ask("GET", "/console/api/templates")).status).toBe(401);
});

test("a log-in over a cookie that somebody else has put there begins another session", async () => {
  const known = newBrowser(cluster);
  await known.logIn(cluster.key);
  const victim = newBrowser(cluster);
  victim.cookie = known.cookie;
  await victim.logIn(cluster.key);
  expect(victim.cookie).not.toBe(known.cookie);
  expect((await known.ask("GET", "/console/api/templates")).status).toBe(401);
});

test("a session that nobody uses for 12 hours ends, and every one after 7 days", async () => {
  const browser = newBrowser(cluster);
  for (const [column, back] of [
    ["used_at", 12 * 3_600_000],
    ["expires_at", 7 * 86_400_000],
  ] as const) {
    await browser.logIn(cluster.key);
    expect((await browser.ask("GET", "/console/api/templates")).status).toBe(200);
    await cluster.database.query(`update console_sessions set ${column} = ${column} - ${back}`);
    expect((await browser.ask("GET", "/console/api/templates")).status, column).toBe(401);
  }
});

test("an operator's session names its project in a header, and ends when the admin token changes", async () => {
  const operator = newBrowser(cluster);
  const begun = await operator.ask("POST", "/console/login", { headers: { "x-admin-token": ADMIN_TOKEN } });
  operator.cookie = begun.headers.getSetCookie().at(-1)?.split(";")[0];
  expect((await operator.ask("GET", "/console/api/admin/projects")).status).toBe(200);
  expect((await operator.ask("GET", "/console/api/templates")).status).toBe(400);
  const headers = { "x-team-id": cluster.teamId };
  expect((await operator.ask("GET", "/console/api/templates", { headers })).status).toBe(200);
  await cluster.restart({ adminToken: "another-admin-token-0002" });
  onTestFinished(() => cluster.restart({ adminToken: ADMIN_TOKEN }));
  expect((await operator.ask("GET", "/console/api/admin/projects")).status).toBe(401);
});

test("an operator's routes are refused to the session of a key", async () => {
  const browser = newBrowser(cluster);
  await browser.logIn(cluster.key);
  for (const path of ["/nodes", "/admin/projects", "/admin/audit"]) {
    expect((await browser.ask("GET", `/console/api${path}`)).status, path).toBe(403);
  }
});

test("a link logs in once, and no session can be had with its code in a cookie", async () => {
  const made = await cluster.ask("POST", "/console/link");
  expect(made.status, made.text).toBe(201);
  const code = (made.body as { path: string }).path.replace("/console/#code=", "");
  const browser = newBrowser(cluster);
  browser.cookie = `svc_console_${new URL(cluster.url).port}=${code}`;
  expect((await browser.ask("GET", "/console/api/templates")).status).toBe(401);
  const headers = { "x-console-code": code };
  const first = await browser.ask("POST", "/console/login", { headers });
  expect(first.body).toMatchObject({ kind: "key", project: { name: "Test Project" } });
  expect((await browser.ask("POST", "/console/login", { headers })).status).toBe(401);
});

test("whom a link logs in can be asked before it is used, by the page alone", async () => {
  const made = await cluster.ask("POST", "/console/link");
  const headers = { "x-console-code": (made.body as { path: string }).path.replace("/console/#code=", "") };
  const browser = newBrowser(cluster);
  for (let count = 0; count < 2; count++) {
    const asked = await browser.ask("GET", "/console/link", { headers });
    expect([asked.status, asked.body]).toEqual([
      200,
      expect.objectContaining({ kind: "key", project: { id: cluster.teamId, name: "Test Project" } }),
    ]);
    expect([asked.headers.getSetCookie(), asked.headers.get("cache-control")]).toEqual([[], "no-store"]);
  }
  const other = { ...headers, "sec-fetch-site": "cross-site" };
  expect((await browser.ask("GET", "/console/link", { headers: other })).status).toBe(403);
  expect((await browser.ask("GET", "/console/link")).status).toBe(401);
  expect((await browser.ask("POST", "/console/login", { headers })).status).toBe(200);
  expect((await browser.ask("GET", "/console/link", { headers })).status).toBe(401);
});

test("a key that logs in without end has the newest thousand of its sessions", async () => {
  const { id, key } = await makeKey();
  const first = newBrowser(cluster);
  await first.logIn(key);
  const at = Date.now() + 1;
  const rows = Array.from(
    { length: 999 },
    (_none, index) => `('${id}-${index}', 'key', '${id}', ${at}, ${at}, ${at + 60_000})`,
  );
  const columns = "hash, kind, key_id, created_at, used_at, expires_at";
  await cluster.database.query(`insert into console_sessions (${columns}) values ${rows.join(", ")}`);
  expect((await first.ask("GET", "/console/api/templates")).status).toBe(200);
  const second = newBrowser(cluster);
  await second.logIn(key);
  const found = await cluster.database.query("select hash from console_sessions where key_id = ?", id);
  expect(found).toHaveLength(1_000);
  expect((await first.ask("GET", "/console/api/templates")).status).toBe(401);
  expect((await second.ask("GET", "/console/api/templates")).status).toBe(200);
});

test("wrong keys, links and cookies are limited as wrong keys of the API are", async () => {
  const limited = await startCluster({ config: { rateLimitFailedAuthPerMinute: 2 } });
  onTestFinished(() => limited.stop());
  const statuses = async (send: () => Promise<{ readonly status: number }>) => {
    const seen: number[] = [];
    for (let count = 0; count < 3; count++) seen.push((await send()).status);
    return seen;
  };
  const browser = newBrowser(limited);
  const wrong = `svc_${"0".repeat(40)}`;
  expect(await statuses(() => browser.logIn(wrong))).toEqual([401, 401, 429]);
  const headers = { "x-console-code": "guessed" };
  expect(await statuses(() => browser.ask("POST", "/console/login", { headers }))).toEqual([401, 401, 429]);
  browser.cookie = `svc_console_${new URL(limited.url).port}=${"A".repeat(43)}`;
  expect(await statuses(() => browser.ask("GET", "/console/api/templates"))).toEqual([401, 401, 429]);
  browser.cookie = undefined;
  expect((await browser.logIn(limited.key)).status).toBe(200);
});
