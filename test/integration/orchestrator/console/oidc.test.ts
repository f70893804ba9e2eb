/** Log-in by OpenID Connect, against a real provider on this machine. */

import { request } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { freePort } from "../../../support/peers/listening.ts";
import { CLIENT, startOidcProvider } from "../../../support/peers/oidc-provider.ts";
import { type Browser, newBrowser } from "./browser.ts";

const PEOPLE = {
  vera: { groups: ["readers"], email: "vera@example.com", email_verified: true },
  eve: { groups: ["readers"], email: "vera@example.com", preferred_username: "eve" },
  max: { groups: ["engineers"] },
  ada: { groups: ["leads", "readers"] },
  nobody: { groups: ["guests"] },
};
const ROLES =
  "readers=test-project:viewer; engineers=test-project:member; leads=test-project:admin; leads=second:viewer";

let cluster: Cluster;
let provider: Awaited<ReturnType<typeof startOidcProvider>>;
beforeAll(async () => {
  const apiPort = await freePort();
  provider = await startOidcProvider(PEOPLE, [`http://127.0.0.1:${apiPort}/console/oidc/back`]);
  cluster = await startCluster({
    config: {
      apiPort,
      oidcIssuer: provider.issuer,
      oidcClientId: CLIENT.id,
      oidcClientSecret: CLIENT.secret,
      oidcRoles: ROLES,
    },
  });
});
afterAll(async () => {
  await cluster.stop();
  await provider.stop();
});

/** Sends the browser to the provider. Resolves with where it is sent. */
async function begin(browser: Browser): Promise<string> {
  const sent = await browser.ask("GET", "/console/oidc/begin");
  expect(sent.status, sent.text).toBe(302);
  browser.cookie = cookieOf(sent.headers);
  return sent.headers.get("location") ?? "";
}

/** Comes back from the provider, as a navigation from there. */
async function comeBack(browser: Browser, address: string, cookie = browser.cookie) {
  const { pathname, search } = new URL(address);
  const headers = { "sec-fetch-site": "cross-site", origin: undefined, cookie };
  const answer = await browser.ask("GET", pathname + search, { headers });
  browser.cookie = cookieOf(answer.headers);
  return { answer, to: answer.headers.get("location") };
}

const cookieOf = (headers: Headers) => headers.getSetCookie().at(-1)?.split(";")[0];

async function logIn(person: keyof typeof PEOPLE): Promise<Browser> {
  const browser = newBrowser(cluster);
  const back = await provider.logIn(await begin(browser), person);
  expect((await comeBack(browser, back)).to).toBe("/console/");
  return browser;
}

test("the log-in is offered, with state, nonce and PKCE, and its cookie comes back from another site", async () => {
  const browser = newBrowser(cluster);
  const none = await browser.ask("GET", "/console/api/session");
  expect(none.body).toMatchObject({ kind: "none", provider: new URL(provider.issuer).host });
  const sent = await browser.ask("GET", "/console/oidc/begin");
  const { searchParams } = new URL(sent.headers.get("location") ?? "");
  for (const name of ["state", "nonce", "code_challenge"]) expect(searchParams.get(name), name).toMatch(/^[\w-]{43}$/);
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  expect(sent.headers.getSetCookie()[0]).toMatch(/; Path=\/console; HttpOnly; SameSite=Lax; Max-Age=600$/);
});

test("the address to come back to has no port that a proxy has added to the host", async () => {
  const to = await new Promise<string>((resolve, reject) => {
    const sent = request(`${cluster.url}/console/oidc/begin`, { headers: { host: "127.0.0.1:80" } }, (answer) => {
      answer.resume();
      resolve(answer.headers.location ?? "");
    });
    sent.once("error", reject);
    sent.end();
  });
  expect(new URL(to).searchParams.get("redirect_uri")).toBe("http://127.0.0.1/console/oidc/back");
});

test("the claim maps people to projects and roles, which are decided as the scopes of keys", async () => {
  const viewer = await logIn("vera");
  expect((await viewer.ask("GET", "/console/api/session")).body).toMatchObject({
    kind: "person",
    name: "vera@example.com",
    projects: [{ id: cluster.teamId, name: "Test Project", scopes: ["read"] }],
  });
  expect((await viewer.ask("GET", "/console/api/v2/sandboxes")).status).toBe(200);
  const body = { templateID: "base" };
  const refused = await viewer.ask("POST", "/console/api/v2/sandboxes", { body });
  expect([refused.status, refused.text]).toEqual([
    403,
    expect.stringContaining("your role lacks the scope 'sandboxes'"),
  ]);

  const member = await logIn("max");
  expect((await member.ask("POST", "/console/api/v2/sandboxes", { body })).status).toBe(201);
  expect((await member.ask("POST", "/console/api/api-keys", { body: { name: "x" } })).status).toBe(403);
  for (const path of ["/nodes", "/admin/projects", "/admin/audit"])
    expect((await member.ask("GET", `/console/api${path}`)).status, path).toBe(403);

  const admin = await logIn("ada");
  const made = await admin.ask("POST", "/console/api/api-keys", { body: { name: "of ada" } });
  expect(made.status, made.text).toBe(201);
  const audit = (await admin.ask("GET", "/console/api/audit?limit=5")).text;
  expect(audit).toContain('"kind":"person","id":"ada","mask":"ada"');
});

test("somebody who has typed another person's address at the provider is not named after it", async () => {
  const eve = await logIn("eve");
  expect((await eve.ask("GET", "/console/api/session")).body).toMatchObject({ kind: "person", name: "eve" });
});

test("somebody with several projects names one, and reaches no other", async () => {
  const second = await cluster.addProject("second");
  const third = await cluster.addProject("third");
  const ada = await logIn("ada");
  expect((await ada.ask("GET", "/console/api/templates")).status).toBe(400);
  const as = (id: string) => ada.ask("GET", "/console/api/templates", { headers: { "x-team-id": id } });
  expect([(await as(cluster.teamId)).status, (await as(second.teamId)).status]).toEqual([200, 200]);
  expect((await as(third.teamId)).status).toBe(403);
  const headers = { "x-team-id": second.teamId };
  const refused = await ada.ask("POST", "/console/api/v2/sandboxes", { headers, body: { templateID: "base" } });
  expect(refused.status).toBe(403);
});

test("somebody whom no rule names gets no session", async () => {
  const browser = newBrowser(cluster);
  const back = await provider.logIn(await begin(browser), "nobody");
  const { answer, to } = await comeBack(browser, back);
  expect(to).toBe("/console/#refused=no-role");
  expect(answer.headers.getSetCookie()).toHaveLength(1);
  expect((await browser.ask("GET", "/console/api/session")).body).toMatchObject({ kind: "none" });
});

test("log-ins by name are in the audit log, also those of people without a role and those of nobody", async () => {
  const lastFour = async () => {
    const path = "/admin/audit?objectKind=session&limit=4";
    return (await cluster.ask("GET", path, { key: null, headers: { "x-admin-token": ADMIN_TOKEN } })).body;
  };
  // Refusals are written together, a moment later, or before the log is read: those of the test before come first now.
  await lastFour();
  const vera = await logIn("vera");
  await vera.ask("POST", "/console/logout");
  const back = await provider.logIn(await begin(vera), "nobody");
  await comeBack(vera, back);
  await comeBack(newBrowser(cluster), back);
  const named = { kind: "person", id: "vera", mask: "vera@example.com" };
  expect(await lastFour()).toMatchObject([
    { action: "logIn", actor: { kind: "open" }, result: "refused", errorCode: "unauthorized", address: "127.0.0.1" },
    { action: "logIn", actor: { kind: "person", id: "nobody" }, result: "refused", errorCode: "forbidden" },
    { action: "logOut", actor: named, projectID: cluster.teamId, result: "done" },
    { action: "logIn", actor: named, projectID: cluster.teamId, result: "done" },
  ]);
});

test("the people of a project are its rules and who is logged in by them, and those who manage the project see them", async () => {
  const ada = await logIn("ada");
  await logIn("vera");
  const headers = { "x-team-id": cluster.teamId };
  const seen = await ada.ask("GET", "/console/api/members", { headers });
  expect([seen.status, seen.body]).toMatchObject([
    200,
    {
      claim: "groups",
      rules: [
        { value: "readers", role: "viewer" },
        { value: "engineers", role: "member" },
        { value: "leads", role: "admin" },
      ],
    },
  ]);
  const { people } = seen.body as { people: { subject: string; name: string; scopes: string[] }[] };
  expect(people.map(({ subject }) => subject)).toEqual(expect.arrayContaining(["ada", "vera"]));
  expect(people).toContainEqual(expect.objectContaining({ name: "vera@example.com", scopes: ["read"] }));
  expect(people.filter(({ subject }) => subject === "vera")).toHaveLength(1);
  const second = await cluster.addProject("without people");
  const browser = newBrowser(cluster);
  await browser.logIn(second.key);
  expect((await browser.ask("GET", "/console/api/members")).body).toEqual({ claim: "groups", rules: [], people: [] });
  const max = await logIn("max");
  expect((await max.ask("GET", "/console/api/members")).status).toBe(403);
});

test("log-ins that one address begins or ends at the provider have a limit", async () => {
  const limited = await startCluster({
    config: {
      oidcIssuer: `http://127.0.0.1:${await freePort()}`,
      oidcClientId: CLIENT.id,
      oidcRoles: ROLES,
      rateLimitFailedAuthPerMinute: 1_000,
    },
  });
  onTestFinished(() => limited.stop());
  const browser = newBrowser(limited);
  const reasons = async (path: string) => {
    const answers = await Promise.all(Array.from({ length: 80 }, () => browser.ask("GET", path)));
    const places = answers.map(({ headers }) => headers.get("location") ?? "");
    return [...new Set(places)].sort();
  };
  expect(await reasons("/console/oidc/begin")).toEqual(["/console/#refused=limited", "/console/#refused=unreachable"]);
  browser.cookie = `svc_console_login_${new URL(limited.url).port}=a.b.c`;
  expect(await reasons("/console/oidc/back?code=a&state=a")).toEqual([
    "/console/#refused=failed",
    "/console/#refused=limited",
  ]);
});

test("a log-in that another browser has begun is not finished in this one", async () => {
  const attacker = newBrowser(cluster);
  const back = await provider.logIn(await begin(attacker), "max");
  const without = newBrowser(cluster);
  expect((await comeBack(without, back)).to).toBe("/console/#refused=expired");
  const other = newBrowser(cluster);
  await begin(other);
  expect((await comeBack(other, back)).to).toBe("/console/#refused=failed");
  expect((await other.ask("GET", "/console/api/session")).body).toMatchObject({ kind: "none" });
});

test.each([
  ["another state", (url: URL) => url.searchParams.set("state", "a".repeat(43))],
  ["no state", (url: URL) => url.searchParams.delete("state")],
  ["a code that nobody was given", (url: URL) => url.searchParams.set("code", "made-up")],
  ["another issuer", (url: URL) => url.searchParams.set("iss", "https://evil.example.com")],
])("a return with %s is refused", async (_name, change) => {
  const browser = newBrowser(cluster);
  const back = new URL(await provider.logIn(await begin(browser), "max"));
  change(back);
  expect((await comeBack(browser, back.href)).to).toBe("/console/#refused=failed");
  expect((await browser.ask("GET", "/console/api/session")).body).toMatchObject({ kind: "none" });
});

test.each([
  ["nonce", 1],
  ["verifier of PKCE", 2],
])("a return whose cookie has another %s is refused", async (_name, part) => {
  const browser = newBrowser(cluster);
  const back = await provider.logIn(await begin(browser), "max");
  const [name, value = ""] = browser.cookie?.split("=") ?? [];
  const parts = value.split(".").map((each, index) => (index === part ? "b".repeat(43) : each));
  expect((await comeBack(browser, back, `${name}=${parts.join(".")}`)).to).toBe("/console/#refused=failed");
});

test("a code works once, and the session is another than one that was put into the browser", async () => {
  const known = await logIn("vera");
  const browser = newBrowser(cluster);
  const back = await provider.logIn(await begin(browser), "vera");
  const pending = browser.cookie;
  await comeBack(browser, back, `${pending}; ${known.cookie}`);
  expect(browser.cookie).not.toBe(known.cookie);
  const again = newBrowser(cluster);
  expect((await comeBack(again, back, pending)).to).toBe("/console/#refused=failed");
});

test("a session ends with its role, with the setting, and after twelve hours", async () => {
  const max = await logIn("max");
  const status = async () => (await max.ask("GET", "/console/api/templates")).status;
  expect(await status()).toBe(200);
  await cluster.restart({ oidcRoles: "leads=test-project:admin" });
  onTestFinished(() => cluster.restart({ oidcRoles: ROLES, oidcIssuer: provider.issuer }));
  expect(await status()).toBe(401);
  await cluster.restart({ oidcRoles: ROLES });
  expect(await status()).toBe(200);
  // The settings that are tried cannot take a property away.
  await cluster.restart({ oidcIssuer: undefined as unknown as string });
  expect(await status()).toBe(401);
  expect((await max.ask("GET", "/console/oidc/begin")).headers.get("location")).toBeNull();
  await cluster.restart({ oidcIssuer: provider.issuer });
  await cluster.database.query(`update console_sessions set expires_at = expires_at - ${12 * 3_600_000}`);
  expect(await status()).toBe(401);
});
