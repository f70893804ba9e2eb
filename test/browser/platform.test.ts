/** What an operator does with projects, and what a receiver of webhooks answered, over an orchestrator with a simulated node. */

import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { newPage, sharedBrowser, violationsInBothThemes } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { ADMIN_TOKEN, type Cluster, type ClusterOptions, startCluster } from "../support/cluster/cluster.ts";
import { accept, startReceiver } from "../support/webhooks/receiver.ts";

const browser = sharedBrowser();

async function started(config: ClusterOptions["config"] = {}): Promise<Cluster> {
  const cluster = await startCluster({ onSqlite: true, config });
  onTestFinished(() => cluster.stop());
  return cluster;
}

async function operator(cluster: Cluster): Promise<Page> {
  // What is left of the screen may ask for a project that is being deleted, or is gone.
  const page = await newPage(browser(), cluster.url, { expected: /status of 40[349]/ });
  await page.goto(`${cluster.url}/console/`);
  await page.getByLabel("API key").fill(ADMIN_TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: "Platform" }).click();
  return page;
}

test("an operator makes a project, gives it a limit and a key, disables it, takes it back and deletes it", async () => {
  const cluster = await started();
  const page = await operator(cluster);
  await page.getByLabel("Name of the project").fill("blue");
  await page.getByRole("button", { name: "Create a project" }).click();
  await page.getByRole("heading", { name: "Project blue" }).waitFor();
  await page.getByLabel("At most (empty: the platform’s)").fill("3");
  await page.getByText("‘sandboxes’: at most 3 (0 used now).").waitFor();
  await page.getByRole("button", { name: "Change the limit" }).click();
  const limit = page
    .getByRole("region", { name: "Limits and use" })
    .getByRole("row")
    .filter({ hasText: /^\s*sandboxes/ });
  await limit.getByText("the project's own").waitFor();
  await page.getByText("The project has no key").waitFor();
  await page.getByLabel("Name", { exact: true }).fill("ci");
  await page.getByRole("button", { name: "Create a key" }).click();
  const key = await page.getByText(/^svc_[0-9a-f]{40}$/).innerText();
  expect((await cluster.ask("GET", "/v2/sandboxes", { key })).status).toBe(200);
  await page.getByText("Nobody logs in by name").waitFor();
  await page.getByRole("region", { name: "Audit log of the project" }).getByText("createProject").first().waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);

  await page.getByLabel("Reason, shown to its callers").fill("unpaid since May");
  await page.getByRole("button", { name: "Disable", exact: true }).click();
  await page.getByText("‘blue’ may then only read and delete").waitFor();
  await page.getByRole("button", { name: "Really disable?" }).click();
  await page.getByRole("button", { name: "Take it back" }).waitFor();
  const refused = await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("unpaid since May")]);
  const acts = page.getByRole("region", { name: "What operators did with the project" });
  await acts.getByText("disableProject").first().waitFor();
  await page.getByRole("button", { name: "Take it back" }).click();
  await page.getByRole("button", { name: "Disable", exact: true }).waitFor();

  expect((await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } })).status).toBe(201);
  await page.getByRole("region", { name: "Sandboxes of blue" }).getByText("running").waitFor();
  await page.getByRole("button", { name: "Kill its sandboxes" }).click();
  await page.getByText("Every sandbox of ‘blue’ ends").waitFor();
  await page.getByRole("button", { name: "Really kill its sandboxes?" }).click();
  await page.getByText("1 sandbox has ended.").waitFor();

  await page.getByRole("button", { name: "Delete the project" }).click();
  await page.getByText("Nothing of ‘blue’ comes back.").waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.getByRole("button", { name: "Delete the project" }).click();
  await page.getByRole("button", { name: "Really delete the project?" }).click();
  const deletion = page.getByRole("region", { name: "Deletion of the project" });
  await deletion.getByText("deleted", { exact: true }).waitFor();
  expect((await cluster.ask("GET", "/v2/sandboxes", { key })).status).toBe(401);
});

test("what a receiver answered to each attempt of a delivery is shown", async () => {
  const cluster = await started({ webhookAllow: "127.0.0.0/8" });
  const receiver = await startReceiver((response) => void response.writeHead(503).end("not before noon"));
  const body = { name: "ops", url: receiver.url, signatureSecret: "a-secret", events: ["sandbox.lifecycle.created"] };
  await cluster.ask("POST", "/events/webhooks", { body });
  await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
  await expect.poll(() => receiver.got.length, { timeout: 60_000 }).toBeGreaterThan(0);
  const page = await newPage(browser(), cluster.url, { expected: /ERR_INCOMPLETE_CHUNKED_ENCODING/ });
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  await logInByLink(page, cluster.url + path);
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("button", { name: "Deliveries to ops" }).click();
  await page
    .getByRole("button", { name: /^Show / })
    .first()
    .click();
  const attempts = page.getByRole("region", { name: /^Attempts of / });
  await attempts.getByText("not before noon").first().waitFor();
  receiver.answer(accept);
  await attempts.getByRole("cell", { name: "200", exact: true }).first().waitFor();
  await attempts.getByRole("cell", { name: "503", exact: true }).first().waitFor();
  await attempts.getByText("not before noon").first().waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
});
