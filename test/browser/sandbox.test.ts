/** The tabs of a sandbox, each with its main act, on a real sandbox. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { sharedConsole, terminalShows } from "../support/browser/browser.ts";
import { ownSandbox, sharedSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();
const sandbox = sharedSandbox({ timeoutMs: 1_200_000 });

async function openTab(tab: string, options = {}): Promise<Page> {
  const { platform, page: open } = console();
  const page = await open(options);
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox().sandboxId}/${tab}`);
  return page;
}

describe("the terminal", () => {
  test("reconnects to the same shell when the connection was lost, and when the page is loaded again", async () => {
    const page = await openTab("terminal", { expected: /ERR_INTERNET_DISCONNECTED|Failed to load/ });
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.type("mark=kept-by-this-shell; echo marked-$((40 + 2))\n");
    await terminalShows(page, "marked-42");
    await page.context().setOffline(true);
    await page.keyboard.type("x");
    await page.context().setOffline(false);
    await page.reload();
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.press("Control+c");
    await page.keyboard.type("echo $mark-again\n");
    await terminalShows(page, "kept-by-this-shell-again");
  });

  test("shows the end of much output, which is held up at its source", async () => {
    const page = await openTab("terminal");
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.type("yes 0123456789abcdef | head -c 2000000; echo the-end-$((40 + 2))\n");
    await terminalShows(page, "the-end-42");
  });
});

test("files are uploaded, opened, changed, downloaded and deleted", async () => {
  const page = await openTab("files");
  const path = join(await folder(), "from the browser.txt");
  await writeFile(path, "first\n");
  await page.getByLabel("Upload").setInputFiles(path);
  await page.getByRole("button", { name: "Open from the browser.txt" }).click();
  await page.getByLabel("/home/user/from the browser.txt").fill("second\n");
  await page.getByRole("button", { name: "Save" }).click();
  await expect
    .poll(() => sandbox().files.read("/home/user/from the browser.txt"), { timeout: 60_000 })
    .toBe("second\n");
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download from the browser.txt" }).click();
  expect((await download).suggestedFilename()).toBe("from the browser.txt");
  await page.getByRole("button", { name: "Delete from the browser.txt" }).click();
  await page.getByRole("button", { name: "Really delete?" }).click();
  await expect.poll(() => sandbox().files.exists("/home/user/from the browser.txt"), { timeout: 60_000 }).toBe(false);
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "svc-browser-"));
  onTestFinished(() => rm(made, { recursive: true }));
  return made;
}

test("the rules of the network are changed and asked, and a refused connection says why", async () => {
  const page = await openTab("network");
  await page.getByLabel("May not reach").fill("198.51.100.0/24");
  await page.getByRole("button", { name: "Put into force" }).click();
  await page.getByLabel("Host").fill("198.51.100.77");
  await expect
    .poll(
      async () => {
        await page.getByRole("button", { name: "Check" }).click();
        return page.getByRole("status").innerText();
      },
      { timeout: 60_000, interval: 1_000 },
    )
    .toMatch(/^deny .*198\.51\.100/);
  await sandbox().commands.run("timeout 2 bash -c '</dev/tcp/198.51.100.77/80' || true");
  await page.getByRole("row").filter({ hasText: "198.51.100.77:80" }).getByText("deny").first().waitFor();
});

test("metrics, processes, the timeline, logs and the raw view show the sandbox as it is", async () => {
  const page = await openTab("metrics");
  await page.getByText(/^Processors: /).waitFor();
  await page.locator("canvas").first().waitFor();
  const command = await sandbox().commands.run("sleep 1234", { background: true });
  await page.getByRole("tab", { name: "Processes" }).click();
  await page.getByRole("button", { name: `Kill process ${command.pid}` }).click();
  await page.getByRole("button", { name: "Really kill?" }).click();
  await page.getByText("sleep 1234").waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByRole("cell", { name: "created" }).first().waitFor();
  await page.getByRole("tab", { name: "Logs" }).click();
  await page.locator(".line").first().waitFor();
  await page.getByRole("tab", { name: "Raw" }).click();
  const raw = page.getByRole("figure").filter({ hasText: "JSON" });
  await raw.getByText(`"sandboxID": "${sandbox().sandboxId}"`).waitFor();
  expect(await page.content()).not.toMatch(/AccessToken/);
});

test("a snapshot is taken, a sandbox is started from it, and a fork is made", async () => {
  const { platform, page: open } = console();
  const page = await open();
  const own = await ownSandbox();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${own.sandboxId}/snapshots`);
  await page.getByRole("button", { name: "Take a snapshot" }).click();
  await page.getByRole("button", { name: /^Start from it: / }).click();
  const isAnother = (url: URL) => /sandboxes\/\w+$/.test(url.pathname) && !url.pathname.includes(own.sandboxId);
  await page.waitForURL(isAnother);
  await page.getByRole("button", { name: "Fork" }).waitFor();
  const started = page.url().split("/").at(-1) ?? "";
  await killShown(page);
  await page.goto(`${platform.apiUrl}/console/sandboxes/${own.sandboxId}/snapshots`);
  const below = page.getByRole("list", { name: /^Sandboxes from / });
  await below.getByRole("link", { name: started }).click();
  await page.getByText("a snapshot of").getByRole("link", { name: own.sandboxId }).click();
  await below.waitFor();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${own.sandboxId}`);
  await page.getByRole("button", { name: "Fork" }).click();
  await page.waitForURL(isAnother);
  await page.getByRole("button", { name: "Fork" }).waitFor();
  await killShown(page);
  await page.goto(`${platform.apiUrl}/console/snapshots`);
  await page
    .getByRole("button", { name: /^Delete / })
    .first()
    .click();
  await page.getByRole("button", { name: "Really delete?" }).click();
  await page.getByRole("button", { name: "Really delete?" }).waitFor({ state: "detached" });
});

async function killShown(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Kill" }).click();
  await page.getByRole("button", { name: "Really kill?" }).click();
  await page.getByText(/it ended at .*: request/).waitFor();
}
