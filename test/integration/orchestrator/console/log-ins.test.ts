/** What log-ins and log-outs leave in the audit log, and how many of them one key may make. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEntry } from "../../../../shared/api/audit.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { newBrowser } from "./browser.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { rateLimitFailedAuthPerMinute: 1_000 } });
});
afterAll(() => cluster.stop());

interface Answered {
  readonly headers: Headers;
}

/** The entries of one request, found by the id in its answer. */
async function entriesOf({ headers }: Answered): Promise<AuditEntry[]> {
  const path = `/admin/audit?order=asc&requestID=${headers.get("x-request-id") ?? ""}`;
  return (await cluster.ask("GET", path, { key: null, headers: { "x-admin-token": ADMIN_TOKEN } }))
    .body as AuditEntry[];
}

async function makeKey(): Promise<{ id: string; key: string }> {
  return (await cluster.ask("POST", "/api-keys", { body: { name: "of a person" } })).body as {
    id: string;
    key: string;
  };
}

test("a log-in and its log-out name the key, the address and the same session, and no secret", async () => {
  const { id, key } = await makeKey();
  const browser = newBrowser(cluster);
  const actor = { kind: "key", id, mask: `svc_${key.slice(4, 6)}…${key.slice(-4)}` };
  const [begun, ...others] = await entriesOf(await browser.logIn(key));
  expect(begun).toMatchObject({
    projectID: cluster.teamId,
    actor,
    action: "logIn",
    object: { kind: "session", id: expect.stringMatching(/^[0-9a-f]{16}$/) as string },
    result: "done",
    address: "127.0.0.1",
    details: {},
  });
  expect(others).toEqual([]);
  const cookie = browser.cookie ?? "";
  const entries = await entriesOf(await browser.ask("POST", "/console/logout"));
  expect(entries).toMatchObject([{ actor, action: "logOut", object: begun?.object, result: "done" }]);
  expect(JSON.stringify([begun, entries])).not.toContain(cookie.slice(cookie.indexOf("=") + 1));
});

test("the people of a project read the log-ins of its keys", async () => {
  const browser = newBrowser(cluster);
  await browser.logIn(cluster.key);
  const listed = (await browser.ask("GET", "/console/api/audit?action=logIn&limit=1")).body;
  expect(listed).toMatchObject([{ action: "logIn", result: "done", address: "127.0.0.1" }]);
});

test("an operator's log-in is an entry of the platform, not of a project", async () => {
  const browser = newBrowser(cluster);
  const answer = await browser.ask("POST", "/console/login", { headers: { "x-admin-token": ADMIN_TOKEN } });
  expect(await entriesOf(answer)).toMatchObject([{ projectID: null, actor: { kind: "admin" }, action: "logIn" }]);
});

test("a link is recorded when it is made, when it logs in, and when somebody tries or opens it again", async () => {
  const { id, key } = await makeKey();
  const made = await cluster.ask("POST", "/console/link", { key });
  expect(await entriesOf(made)).toMatchObject([
    { action: "makeLogInLink", actor: { id }, object: { kind: "session" } },
  ]);
  const code = (made.body as { path: string }).path.replace("/console/#code=", "");
  const logIn = () => newBrowser(cluster).ask("POST", "/console/login", { headers: { "x-console-code": code } });
  const open = () => newBrowser(cluster).ask("GET", "/console/link", { headers: { "x-console-code": code } });
  expect(await entriesOf(await logIn())).toMatchObject([{ action: "logIn", actor: { id }, result: "done" }]);
  for (const again of [logIn, open])
    expect(await entriesOf(await again())).toMatchObject([
      { action: "logIn", actor: { kind: "open" }, result: "refused", status: 401, errorCode: "unauthorized" },
    ]);
});

test.each([
  ["a wrong key", { "x-api-key": `svc_${"0".repeat(40)}` }, 401],
  ["a wrong admin token", { "x-admin-token": "a-wrong-admin-token" }, 401],
  ["nothing", {}, 401],
  ["a page of another site", { "sec-fetch-site": "cross-site" }, 403],
])("a log-in with %s is recorded as refused, with its address and nobody's name", async (_name, headers, status) => {
  const answer = await newBrowser(cluster).ask("POST", "/console/login", { headers });
  expect(answer.status).toBe(status);
  const [entry, ...others] = await entriesOf(answer);
  expect(entry).toMatchObject({ action: "logIn", actor: { kind: "open", id: null }, result: "refused", status });
  expect([entry?.address, entry?.projectID, others]).toEqual(["127.0.0.1", null, []]);
});

test("a log-out of nobody leaves no entry", async () => {
  const browser = newBrowser(cluster);
  const count = async () => {
    const path = "/admin/audit?action=logOut&limit=100";
    const listed = await cluster.ask("GET", path, { key: null, headers: { "x-admin-token": ADMIN_TOKEN } });
    return (listed.body as unknown[]).length;
  };
  const before = await count();
  expect((await browser.ask("POST", "/console/logout")).status).toBe(204);
  browser.cookie = `svc_console_${new URL(cluster.url).port}=${"A".repeat(43)}`;
  expect((await browser.ask("POST", "/console/logout")).status).toBe(204);
  expect(await count()).toBe(before);
});

test("a log-in in place of another one is an entry about its own session", async () => {
  const browser = newBrowser(cluster);
  const [first] = await entriesOf(await browser.logIn(cluster.key));
  const entries = await entriesOf(await browser.logIn((await makeKey()).key));
  expect(entries).toMatchObject([{ action: "logIn", result: "done" }]);
  expect(entries[0]?.object.id).not.toBe(first?.object.id);
});

test("the log-ins of one key have a limit, and so have their entries; another key logs in all the same", async () => {
  const { id, key } = await makeKey();
  // At once, and more than a slow machine has room for meanwhile.
  const answers = await Promise.all(Array.from({ length: 90 }, () => newBrowser(cluster).logIn(key)));
  const statuses = answers.map(({ status }) => status);
  const made = statuses.filter((status) => status === 200).length;
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect(made).toBeGreaterThanOrEqual(60);
  const path = `/admin/audit?actor=${id}&action=logIn&limit=100&result=`;
  const count = async (result: string) =>
    (
      (await cluster.ask("GET", path + result, { key: null, headers: { "x-admin-token": ADMIN_TOKEN } }))
        .body as unknown[]
    ).length;
  expect(await count("done")).toBe(made);
  // Twenty in each of the one or two minutes.
  const refused = await count("refused");
  expect([refused > 0, refused <= 40]).toEqual([true, true]);
  expect((await newBrowser(cluster).logIn((await makeKey()).key)).status).toBe(200);
});
