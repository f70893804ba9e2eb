/** What a hostile tenant sends the platform itself, shown by the console: answers to webhooks, and names of templates. */

import { expect, onTestFinished, test } from "vitest";
import { newPage, sharedBrowser } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { STRANGE, TEXTS } from "../support/browser/hostile.ts";
import { startCluster } from "../support/cluster/cluster.ts";
import { startReceiver } from "../support/webhooks/receiver.ts";

const browser = sharedBrowser();

test("what a receiver of webhooks answers is shown as text", async () => {
  const cluster = await startCluster({ onSqlite: true, config: { webhookAllow: "127.0.0.0/8" } });
  onTestFinished(() => cluster.stop());
  const receiver = await startReceiver((response) => {
    response.writeHead(500, { "content-type": "text/html", refresh: "0;url=http://198.51.100.1/" });
    response.end(TEXTS.join("\n"));
  });
  const page = await newPage(browser(), cluster.url);
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  await logInByLink(page, cluster.url + path);
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByLabel("Name").fill("<img src=x onerror=alert(1)>");
  await page.getByLabel("URL").fill(receiver.url);
  await page.getByLabel("Secret of its signatures").fill("a-secret-of-the-browser");
  await page.getByRole("button", { name: "Create a webhook" }).click();
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByRole("button", { name: /^Deliveries to / }).click();
  await page.getByRole("region", { name: "Deliveries" }).getByText("500").first().waitFor();
  await page
    .getByRole("button", { name: /^Show / })
    .first()
    .click();
  const answer = page.getByRole("figure").filter({ hasText: "Answer" });
  for (const text of ["onerror=alert(1)", "</pre><iframe", "http-equiv=refresh"])
    await answer.getByText(text).first().waitFor();
  const attempts = page.getByRole("region", { name: /^Attempts of / });
  for (const text of ["onerror=alert(1)", "answered 500"]) await attempts.getByText(text).first().waitFor();
  expect(await page.locator(STRANGE).count()).toBe(0);
  const before = receiver.got.length;
  await page
    .getByRole("button", { name: /^Send again: / })
    .first()
    .click();
  await expect.poll(() => receiver.got.length, { timeout: 60_000 }).toBeGreaterThan(before);
});

test("a name of a template that is more than a name is refused, and one that is allowed is shown as text", async () => {
  const cluster = await startCluster({ onSqlite: true });
  onTestFinished(() => cluster.stop());
  const allowed: string[] = [];
  for (const name of TEXTS) {
    const { status } = await cluster.ask("POST", "/v3/templates", { body: { name } });
    if (status < 300) allowed.push(name);
    else expect(status, name).toBe(400);
  }
  // Only letters, digits, dashes and underscores can be in a name.
  for (const name of allowed) expect(name).toMatch(/^[\w-]+$/);
  const page = await newPage(browser(), cluster.url);
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  await logInByLink(page, cluster.url + path);
  await page.getByRole("link", { name: "Templates" }).click();
  await page.getByRole("heading", { name: "Templates" }).waitFor();
  const listed = (await cluster.ask("GET", "/v2/templates")).body as readonly { readonly names: readonly string[] }[];
  for (const [name = ""] of listed.map(({ names }) => names))
    await page.getByRole("link", { name, exact: true }).waitFor();
  expect(await page.locator(STRANGE).count()).toBe(0);
});
