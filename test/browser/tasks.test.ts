/** What people come for, in few clicks, over an orchestrator of its own with a simulated node. */

import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { newPage, sharedBrowser, violationsInBothThemes } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../support/cluster/cluster.ts";

const browser = sharedBrowser();

async function opened(): Promise<{ readonly cluster: Cluster; readonly page: Page }> {
  const cluster = await startCluster({ onSqlite: true });
  onTestFinished(() => cluster.stop());
  const page = await newPage(browser(), cluster.url, { expected: /ERR_INCOMPLETE_CHUNKED_ENCODING/ });
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  await logInByLink(page, cluster.url + path);
  return { cluster, page };
}

async function createdBy(cluster: Cluster, key: string, more: object = {}): Promise<string> {
  const made = await cluster.ask("POST", "/v2/sandboxes", {
    key,
    body: { templateID: "base", timeout: 3600, ...more },
  });
  return (made.body as { sandboxID: string }).sandboxID;
}

test("a key leaked: it is revoked, and the sandboxes that it created are killed", async () => {
  const { cluster, page } = await opened();
  const made = await cluster.ask("POST", "/api-keys", { body: { name: "of an agent" } });
  const { key } = made.body as { key: string };
  const [leaked, other] = [await createdBy(cluster, key), await createdBy(cluster, cluster.key)];
  await page.getByRole("link", { name: "Project" }).click();
  await page.getByRole("button", { name: "What it did: of an agent" }).click();
  await page
    .getByRole("region", { name: "Audit log of of an agent" })
    .getByRole("link", { name: leaked })
    .first()
    .waitFor();
  await page.getByRole("button", { name: "Revoke of an agent" }).click();
  await page.getByRole("button", { name: "Really revoke?" }).click();
  await page.getByRole("button", { name: "Revoke of an agent" }).waitFor({ state: "detached" });
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.getByRole("link", { name: "the sandboxes that it created" }).click();
  await page.getByRole("link", { name: leaked }).waitFor();
  expect(await page.getByRole("link", { name: other }).count()).toBe(0);
  await page.getByLabel("Choose all").check();
  await page.getByRole("button", { name: "Kill", exact: true }).click();
  await page.getByRole("button", { name: "Really kill?" }).click();
  await page.getByRole("link", { name: leaked }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Show all" }).click();
  await page.getByRole("link", { name: other }).waitFor();
});

test("one like that one: the form has what the sandbox has, and names what it leaves", async () => {
  const { cluster, page } = await opened();
  const network = { allowOut: ["pypi.org"], denyOut: ["0.0.0.0/0"], allowPublicTraffic: false };
  const id = await createdBy(cluster, cluster.key, { metadata: { made: "by-hand" }, network });
  await page.getByRole("link", { name: id }).click();
  await page.getByRole("link", { name: "Start one like it" }).click();
  await page.getByText("the token that its ports ask for").waitFor();
  expect(await page.getByLabel("May reach").inputValue()).toBe("pypi.org");
  expect(await page.getByLabel("Labels").inputValue()).toBe("made=by-hand");
  expect(await violationsInBothThemes(page)).toEqual([]);
});

test("which sandbox uses most memory, and which node is full", async () => {
  const { cluster, page } = await opened();
  const id = await createdBy(cluster, cluster.key);
  await page.getByRole("link", { name: id }).waitFor();
  await page.getByRole("button", { name: "Use of memory" }).click();
  await page
    .getByRole("region", { name: "Use of memory" })
    .or(page.getByText("No sandbox that is listed runs and has been measured yet."))
    .waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("API key").fill(ADMIN_TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: "Platform" }).click();
  await page
    .getByRole("region", { name: "Nodes" })
    .getByText(/^\d+ % /)
    .waitFor();
});

test("an act by Ctrl K alone: what cannot be taken back asks, and the answer has the focus", async () => {
  const { cluster, page } = await opened();
  const id = await createdBy(cluster, cluster.key);
  await page.getByRole("link", { name: id }).click();
  await page.getByRole("button", { name: "Kill", exact: true }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("kill");
  await page.keyboard.press("Enter");
  await page.locator("button.asked:not([aria-disabled])").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText(/it ended at .*: request/).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("log out");
  await page.keyboard.press("Enter");
  await page.getByLabel("API key").waitFor();
});
