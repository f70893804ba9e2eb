/** A one-time link that somebody else has sent, over an orchestrator of its own: it logs nobody in before a deliberate press. */

import { expect, onTestFinished, test } from "vitest";
import { newPage, sharedBrowser, violations } from "../support/browser/browser.ts";
import { type Cluster, startCluster } from "../support/cluster/cluster.ts";

const browser = sharedBrowser();

/** Presses the button as soon as it is there, as whoever was asked to press something at this place. */
const AT_ONCE = `new MutationObserver(() => document.querySelector("button.main[aria-describedby]")?.click())
  .observe(document, { childList: true, subtree: true })`;

async function linkOf(cluster: Cluster, key: string): Promise<string> {
  const made = await cluster.ask("POST", "/console/link", { key });
  return cluster.url + (made.body as { path: string }).path;
}

test("a link logs in by the press of a button that names whom, and takes no press in its first moment", async () => {
  const cluster = await startCluster({ onSqlite: true });
  onTestFinished(() => cluster.stop());
  const page = await newPage(browser(), cluster.url);
  await page.addInitScript(AT_ONCE);
  const taken = page.locator("button.main[aria-describedby]:not([aria-disabled])");
  const link = await linkOf(cluster, cluster.key);
  await page.goto(link);
  await taken.waitFor();
  expect(await page.context().cookies()).toEqual([]);
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Do not use the link" }).click();
  await page.getByLabel("API key").waitFor();
  expect(await page.context().cookies()).toEqual([]);

  // In the same tab nothing but the hash of the address differs. The focus is on the button.
  await page.goto(link);
  await taken.waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
  expect(await page.context().cookies()).toHaveLength(1);

  const other = await cluster.addProject("of somebody else");
  const sent = await linkOf(cluster, other.key);
  await page.goto(sent);
  await page.getByText("You are logged in to Test Project.").waitFor();
  await taken.waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Stay as I am" }).click();
  await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
  await page.getByRole("navigation").getByText("Test Project").waitFor();
  await page.goto(sent);
  await page.getByRole("button", { name: /^Log in as .* of of somebody else$/ }).click();
  await page.getByRole("navigation").getByText("of somebody else").waitFor();
});

test("a link that was used tells so, and the log-in is there", async () => {
  const cluster = await startCluster({ onSqlite: true });
  onTestFinished(() => cluster.stop());
  const link = await linkOf(cluster, cluster.key);
  for (const isUsed of [false, true]) {
    const page = await newPage(browser(), cluster.url, { expected: /status of 401/, theme: "light" });
    await page.goto(link);
    if (isUsed) await page.getByText("this link has been used").waitFor();
    else await page.locator("button.main[aria-describedby]:not([aria-disabled])").waitFor();
    expect(await violations(page)).toEqual([]);
    if (!isUsed) await page.getByRole("button", { name: /^Log in as / }).click();
    await (isUsed ? page.getByLabel("API key") : page.getByRole("heading", { name: "Sandboxes" })).waitFor();
  }
});
