/** Tasks of somebody new with real sandboxes: what is pressed is counted, and docs/console.md has the same numbers. */

import { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { sharedConsole } from "../support/browser/browser.ts";
import { newcomerAt, screenLink } from "../support/browser/newcomer.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();

test("why a sandbox cannot reach a host: the refused connection names the rule and the reason", async () => {
  const { page: open } = console();
  const sandbox = await ownSandbox({ network: { denyOut: ["198.51.100.0/24"] } });
  await sandbox.commands.run("timeout 20 bash -c '</dev/tcp/198.51.100.78/80' || true");
  const page = await open();
  const newcomer = newcomerAt(page, "refused");
  await newcomer.press(page.getByRole("link", { name: sandbox.sandboxId }));
  await newcomer.press(page.getByRole("tab", { name: "Network" }));
  const row = page.getByRole("row").filter({ hasText: "198.51.100.78:80" });
  await row.getByText("deny", { exact: true }).first().waitFor();
  await row.getByText("198.51.100.0/24").first().waitFor();
  newcomer.answered();
});

test("a port of a sandbox is opened from the list of its programs and ports", async () => {
  const { page: open } = console();
  const sandbox = await ownSandbox();
  await sandbox.files.write("/home/user/www/index.html", "<!doctype html><title>of the newcomer</title>");
  await sandbox.commands.run("cd www && exec python3 -m http.server 8000", { background: true, timeoutMs: 0 });
  await sandbox.commands.run("until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.2; done");
  const page = await open();
  const newcomer = newcomerAt(page, "port");
  await newcomer.press(page.getByRole("link", { name: sandbox.sandboxId }));
  await newcomer.press(page.getByRole("tab", { name: "Processes and ports" }));
  const opened = page.context().waitForEvent("page");
  const ports = page.getByRole("region", { name: "Ports", exact: true });
  await newcomer.press(ports.getByRole("link", { name: sandbox.getHost(8000) }));
  const window = await opened;
  onTestFinished(() => window.close());
  await expect.poll(() => window.title(), { timeout: 60_000 }).toBe("of the newcomer");
  newcomer.answered();
});

test("another sandbox is started from a snapshot", async () => {
  const { page: open } = console();
  const own = await ownSandbox();
  const started = { id: "" };
  // A snapshot is not deleted while a sandbox that was started from it runs.
  onTestFinished(async () => {
    if (started.id !== "") await Sandbox.kill(started.id);
    const snapshots = Sandbox.listSnapshots({ sandboxId: own.sandboxId });
    while (snapshots.hasNext)
      for (const { snapshotId } of await snapshots.nextItems()) await Sandbox.deleteSnapshot(snapshotId);
  });
  await own.createSnapshot();
  const page = await open();
  const newcomer = newcomerAt(page, "snapshot");
  await newcomer.press(screenLink(page, "Snapshots"));
  const row = page.getByRole("row").filter({ hasText: own.sandboxId });
  await newcomer.press(row.getByRole("button", { name: /^Start from it: / }));
  await page.waitForURL((url) => /sandboxes\/\w+$/.test(url.pathname) && !url.pathname.includes(own.sandboxId));
  started.id = page.url().split("/").at(-1) ?? "";
  await page.getByRole("button", { name: "Fork" }).waitFor();
  newcomer.answered();
});

test("a sandbox is found by its label, and paused", async () => {
  const { page: open } = console();
  const sandbox = await ownSandbox({ metadata: { task: "of-the-newcomer" } });
  await ownSandbox({ metadata: { task: "of-another" } });
  const page = await open();
  const newcomer = newcomerAt(page, "pause");
  await newcomer.type(page.getByLabel("Filter"), "task=of-the-newcomer");
  await page.getByText("of-another").first().waitFor({ state: "detached" });
  const row = page.getByRole("row").filter({ hasText: sandbox.sandboxId });
  await newcomer.press(row.getByRole("checkbox"));
  await newcomer.press(page.getByRole("button", { name: "Pause", exact: true }));
  await row.getByText("paused").waitFor();
  newcomer.answered();
});
