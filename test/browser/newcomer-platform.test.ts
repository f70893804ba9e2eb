/**
 * Tasks of somebody new over an orchestrator of its own with simulated nodes: what is pressed is counted, and docs/console.md has
 * the same numbers.
 */

import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { newPage, sharedBrowser, violationsInBothThemes } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { newcomerAt, screenLink } from "../support/browser/newcomer.ts";
import { BUILDING, buildingOn } from "../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, type ClusterOptions, startCluster } from "../support/cluster/cluster.ts";
import { able } from "../support/fakes/fake-machine.ts";
import { accept, startReceiver, status } from "../support/webhooks/receiver.ts";

const browser = sharedBrowser();
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
/** The stream of events ends with a page that is left, and with an orchestrator that stops. */
const expected = /ERR_INCOMPLETE_CHUNKED_ENCODING/;

async function clusterOf(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = await startCluster({ onSqlite: true, ...options });
  onTestFinished(() => cluster.stop());
  return cluster;
}

/** @param before runs in the page before its own scripts */
async function openedAt(cluster: Cluster, before?: string): Promise<Page> {
  const page = await newPage(browser(), cluster.url, { expected });
  if (before !== undefined) await page.addInitScript(before);
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  await logInByLink(page, cluster.url + path);
  return page;
}

async function makeKey(cluster: Cluster, scopes: readonly string[]): Promise<{ id: string; key: string }> {
  const made = await cluster.ask("POST", "/api-keys", { body: { name: "of an agent", scopes } });
  return made.body as { id: string; key: string };
}

test("who killed a sandbox whose id is known: the timeline names the key, also one that was revoked", async () => {
  const cluster = await clusterOf();
  const { id, key } = await makeKey(cluster, ["sandboxes"]);
  const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } });
  const { sandboxID } = made.body as { sandboxID: string };
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`, { key })).status).toBe(204);
  expect((await cluster.ask("DELETE", `/api-keys/${id}`)).status).toBe(204);
  const page = await openedAt(cluster);
  const newcomer = newcomerAt(page, "killed");
  await newcomer.find(sandboxID);
  await page.getByText(/it ended at .*: request; the timeline tells whose/).waitFor();
  const changes = page.getByRole("region", { name: "Who changed the sandbox" });
  const kill = changes.getByRole("row").filter({ hasText: "kill" }).first();
  await kill.getByText("‘of an agent’").waitFor();
  newcomer.answered();
  expect(await violationsInBothThemes(page)).toEqual([]);
});

/** The clock of a browser that is a day ahead: what the platform has kept today is yesterday's there. */
const A_DAY_AHEAD = `{
  const Today = Date;
  const now = () => Today.now() + 86400000;
  globalThis.Date = class extends Today {
    constructor(...given) { super(...(given.length === 0 ? [now()] : given)); }
    static now() { return now(); }
  };
}`;

test("yesterday's use is saved as a file", async () => {
  const cluster = await clusterOf();
  await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } });
  const kept = async () =>
    (await cluster.ask("GET", `/teams/${cluster.teamId}/metrics`)).body as readonly { concurrentSandboxes: number }[];
  await expect.poll(async () => (await kept()).at(-1)?.concurrentSandboxes, { timeout: 60_000 }).toBe(1);
  const page = await openedAt(cluster, A_DAY_AHEAD);
  const newcomer = newcomerAt(page, "usage");
  await newcomer.press(screenLink(page, "Project"));
  await newcomer.choose(page.getByRole("combobox", { name: /^Time/ }), "yesterday");
  const download = page.waitForEvent("download");
  await newcomer.press(page.getByRole("button", { name: "Save as CSV" }));
  const file = await download;
  newcomer.answered();
  expect(file.suggestedFilename()).toMatch(/^usage-\d{8}\.csv$/);
  const [names = "", ...lines] = (await readFile(await file.path(), "utf8")).trimEnd().split("\r\n");
  const at = names.split(",").indexOf("concurrentSandboxes");
  expect(lines.map((line) => Number(line.split(",")[at]))).toContain(1);
});

test("a template whose build failed shows the reason as soon as it is opened", async () => {
  const cluster = await clusterOf(BUILDING);
  cluster.agent.onBuild = (build) => build.fail("RUN npm ci: exit status 7", "2");
  const { request, start, status: statusOf } = buildingOn(() => cluster);
  const broken = await request({ name: "broken" });
  await start(broken);
  await expect.poll(() => statusOf(broken)).toMatchObject({ status: "error" });
  const page = await openedAt(cluster);
  const newcomer = newcomerAt(page, "build");
  await newcomer.press(screenLink(page, "Templates"));
  await page.getByRole("row").filter({ hasText: "broken" }).getByText("error", { exact: true }).waitFor();
  await newcomer.press(page.getByRole("link", { name: /\/broken$/ }));
  await page.getByRole("alert").filter({ hasText: "exit status 7" }).waitFor();
  newcomer.answered();
  expect(await violationsInBothThemes(page)).toEqual([]);
});

test("an event that a webhook did not get is sent again", async () => {
  const cluster = await clusterOf({ config: { webhookAllow: "127.0.0.0/8" } });
  const receiver = await startReceiver(status(500));
  const events = ["sandbox.lifecycle.created"];
  const body = { name: "of a chat", url: receiver.url, events, signatureSecret: "a-secret-of-the-newcomer" };
  const { id } = (await cluster.ask("POST", "/events/webhooks", { body })).body as { id: string };
  await cluster.ask("POST", `/events/webhooks/${id}/test`);
  const failed = async () =>
    (await cluster.ask("GET", `/events/webhooks/${id}/deliveries?status=failed`)).body as readonly object[];
  await expect.poll(async () => (await failed()).length).toBe(1);
  receiver.answer(accept);
  const page = await openedAt(cluster);
  const newcomer = newcomerAt(page, "webhook");
  await newcomer.press(screenLink(page, "Webhooks"));
  await newcomer.press(page.getByRole("button", { name: "Deliveries to of a chat" }));
  await newcomer.press(page.getByRole("button", { name: /^Send again: / }));
  const deliveries = page.getByRole("region", { name: "Deliveries" });
  await deliveries.getByText("delivered", { exact: true }).waitFor();
  newcomer.answered();
  await page.getByLabel("Failed only").check();
  await deliveries.getByText("delivered", { exact: true }).waitFor({ state: "detached" });
  await deliveries.getByText("failed", { exact: true }).waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
});

test("a key is rotated: the new one may do the same, and the earlier one is revoked when nothing uses it any more", async () => {
  const cluster = await clusterOf();
  const { key: earlier } = await makeKey(cluster, ["read", "sandboxes"]);
  const page = await openedAt(cluster);
  const newcomer = newcomerAt(page, "rotate");
  await newcomer.press(screenLink(page, "Project"));
  await newcomer.press(page.getByRole("button", { name: "Rotate of an agent", exact: true }));
  const shown = page.getByText(/^svc_[0-9a-f]{40}$/);
  await shown.waitFor();
  const key = await shown.innerText();
  const answers = (of: string) => cluster.ask("GET", "/v2/sandboxes", { key: of }).then(({ status: code }) => code);
  expect(await Promise.all([answers(earlier), answers(key)])).toEqual([200, 200]);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await newcomer.press(page.getByRole("button", { name: "Revoke the earlier one" }));
  await newcomer.press(page.getByRole("button", { name: "Really revoke the earlier one?" }));
  await page.getByRole("button", { name: "Really revoke the earlier one?" }).waitFor({ state: "detached" });
  newcomer.answered();
  await expect.poll(() => answers(earlier)).toBe(401);
  const keys = (await cluster.ask("GET", "/api-keys")).body as readonly { name: string; scopes: readonly string[] }[];
  const rotated = keys.filter(({ name }) => name === "of an agent");
  expect(rotated.map(({ scopes }) => [...scopes].sort())).toEqual([["read", "sandboxes"]]);
});

test("a node is drained, and each of its sandboxes is followed to another one", async () => {
  const cluster = await clusterOf({
    agents: 2,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, peers: true } } },
    config: { nodeTimeoutMs: 600_000, resumeTimeoutMs: 3_000, patienceMs: 400 },
  });
  const [home, other] = cluster.agents;
  if (home === undefined || other === undefined) throw new Error("the cluster has too few nodes");
  home.onOffer = () => ({
    ticket: "f".repeat(64),
    projectId: "p",
    ref: `${"a".repeat(64)}.1`,
    doneBytes: 1,
    totalBytes: 1,
  });
  other.onFetch = ({ snapshotId }) => {
    const snapshot = home.snapshots.get(snapshotId);
    if (snapshot !== undefined) other.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 1, totalBytes: 1 };
  };
  // The other node takes nothing before the sandbox is where it is to be.
  const set = (to: string) => cluster.ask("POST", `/nodes/${other.nodeId}`, { ...admin, body: { status: to } });
  await set("standby");
  const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } });
  const { sandboxID } = made.body as { sandboxID: string };
  await set("ready");
  const page = await newPage(browser(), cluster.url, { expected });
  await page.goto(`${cluster.url}/console/`);
  await page.getByLabel("API key").fill(ADMIN_TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await screenLink(page, "Platform").waitFor();
  const newcomer = newcomerAt(page, "drain");
  await newcomer.press(screenLink(page, "Platform"));
  await newcomer.press(page.getByRole("button", { name: `Drain of ${home.nodeId}`, exact: true }));
  await newcomer.press(page.getByRole("button", { name: "Begin the drain" }));
  await page.getByText(/1 of 1 sandboxes are off the node/).waitFor();
  const row = page
    .getByRole("region", { name: "Sandboxes of the drain" })
    .getByRole("row")
    .filter({ hasText: sandboxID });
  await row.getByText("moved", { exact: true }).waitFor();
  await row.getByText(other.nodeId, { exact: true }).waitFor();
  newcomer.answered();
  expect(await violationsInBothThemes(page)).toEqual([]);
});
