/** The tabs of a sandbox, each with its main act, on a real sandbox. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { sharedConsole, terminalShows } from "../support/browser/browser.ts";
import { linesOf, retype } from "../support/browser/file-field.ts";
import { ownSandbox, sharedSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();
const sandbox = sharedSandbox({ timeoutMs: 1_200_000 });

/** A link as programs write it, with another text than its address. */
const LINK = "\u001B]8;;http://198.51.100.1/elsewhere\u001B\\";
const END_OF_LINK = "\u001B]8;;\u001B\\";

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
    // bash loses letters that arrive while it handles the signal.
    await terminalShows(page, "^C\nuser@sandbox:~$");
    await page.keyboard.type("echo $mark-again\n");
    await terminalShows(page, "kept-by-this-shell-again");
  });

  test("shows the end of much output, which is held up at its source", async () => {
    const page = await openTab("terminal");
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.type("yes 0123456789abcdef | head -c 2000000; echo the-end-$((40 + 2))\n");
    await terminalShows(page, "the-end-42");
  });

  test("a link that a program makes asks before it opens, and shows its address", async () => {
    await sandbox().files.write("/home/user/link", `${LINK}here-it-is${END_OF_LINK}\n`);
    const page = await openTab("terminal");
    const asked: string[] = [];
    const opened: string[] = [];
    page.on("dialog", (dialog) => {
      asked.push(dialog.message());
      void dialog.dismiss();
    });
    page.context().on("page", (other) => opened.push(other.url()));
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.type("clear; cat link\n");
    const link = page.locator(".xterm-rows").getByText("here-it-is", { exact: true });
    await link.waitFor();
    const place = await link.boundingBox();
    if (place === null) throw new Error("the link is not in view");
    const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
    await expect
      .poll(
        async () => {
          // The terminal finds the link while the mouse moves over it.
          await page.mouse.move(x - 3, y);
          await page.mouse.move(x, y);
          await page.mouse.click(x, y);
          return asked.join();
        },
        { timeout: 30_000, interval: 500 },
      )
      .toContain("http://198.51.100.1/elsewhere");
    expect(opened).toEqual([]);
  });
});

test("files are uploaded, opened, changed, downloaded and deleted", async () => {
  const page = await openTab("files");
  const path = join(await folder(), "from the browser.txt");
  await writeFile(path, "first\n");
  await page.getByLabel("Upload").setInputFiles(path);
  await page.getByRole("button", { name: "Open from the browser.txt" }).click();
  await retype(page.getByLabel("/home/user/from the browser.txt"), "second\n");
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

test("a file that somebody else has changed is not overwritten before somebody says so", async () => {
  const path = "/home/user/shared.conf";
  await sandbox().files.write(path, "first\n");
  // The refusal with 412 is one of the page's requests.
  const page = await openTab("files", { expected: /status of 412/ });
  await page.getByRole("button", { name: "Open shared.conf", exact: true }).click();
  const field = page.getByLabel(path);
  await retype(field, "mine\n");
  await sandbox().files.write(path, "theirs\n");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText(`Somebody has changed or deleted ${path} since it was opened. Nothing was saved.`).waitFor();
  expect(await sandbox().files.read(path)).toBe("theirs\n");
  await page.getByRole("button", { name: "Load theirs, and lose mine", exact: true }).click();
  await expect.poll(() => linesOf(field), { timeout: 60_000 }).toEqual(["theirs", ""]);
  await retype(field, "ours\n");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved.", { exact: true }).waitFor();
  expect(await sandbox().files.read(path)).toBe("ours\n");
});

test("a binary file is not opened as text", async () => {
  await sandbox().files.write("/home/user/binary.dat", new Blob([Uint8Array.of(1, 0, 2)]));
  const page = await openTab("files");
  await page.getByRole("button", { name: "Open binary.dat", exact: true }).click();
  await page.getByText("/home/user/binary.dat is binary: it has zero bytes.").waitFor();
  expect(await page.getByRole("button", { name: "Save", exact: true }).count()).toBe(0);
});

/** One pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** In the page: 0 before it is drawn. */
const widthOf = (element: unknown) => (element as { readonly naturalWidth: number }).naturalWidth;

test("a picture is drawn from a blob, and what only has a picture's name is text", async () => {
  await sandbox().files.write("/home/user/one.dat", new Blob([Buffer.from(PNG, "base64")]));
  await sandbox().files.write("/home/user/none.png", "<script>alert(1)</script>");
  const page = await openTab("files");
  await page.getByRole("button", { name: "Open one.dat", exact: true }).click();
  const picture = page.getByRole("img", { name: "/home/user/one.dat", exact: true });
  await expect.poll(() => picture.evaluate(widthOf), { timeout: 30_000 }).toBe(1);
  expect(await picture.getAttribute("src")).toMatch(/^blob:/);
  await page.getByRole("button", { name: "Open none.png", exact: true }).click();
  await expect.poll(() => linesOf(page.getByLabel("/home/user/none.png"))).toEqual(["<script>alert(1)</script>"]);
  expect(await picture.count()).toBe(0);
});

test("a rule that sets a header is made, and its plain value is not shown again", async () => {
  const page = await openTab("network");
  await page.getByRole("button", { name: "Add a rule for a host", exact: true }).click();
  await page.getByRole("textbox", { name: "Host of rule 1", exact: true }).fill("api.invalid");
  await page.getByRole("textbox", { name: "Header 1 of rule 1", exact: true }).fill("X-Plain");
  await page.getByRole("textbox", { name: "Value 1 of rule 1", exact: true }).fill("hunter2-of-the-browser");
  await page.getByRole("button", { name: "Put into force", exact: true }).click();
  await page.getByPlaceholder("hidden; stays as it is", { exact: true }).waitFor();
  expect(await page.content()).not.toContain("hunter2-of-the-browser");
  expect(await page.getByRole("textbox", { name: "Value 1 of rule 1", exact: true }).inputValue()).toBe("");
  await page.getByRole("tab", { name: "Raw", exact: true }).click();
  await page.getByText('"X-Plain": "(not shown)"').waitFor();
  await page.getByRole("tab", { name: "Network", exact: true }).click();
  await page.getByRole("button", { name: "Remove rule 1", exact: true }).click();
  // The next test's page begins again with another policy when this one comes into force under it.
  const answered = page.waitForResponse((answer) => answer.request().method() === "PUT");
  await page.getByRole("button", { name: "Put into force", exact: true }).click();
  expect((await answered).ok()).toBe(true);
  await page.getByPlaceholder("hidden; stays as it is", { exact: true }).waitFor({ state: "detached" });
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
  await sandbox().commands.run("timeout 20 bash -c '</dev/tcp/198.51.100.77/80' || true");
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
  const depending = page.getByRole("region", { name: /^What depends on / });
  await depending.getByText("No sandbox of the project that runs or is paused.").waitFor();
  await page.getByRole("button", { name: "Really delete?" }).click();
  await page.getByRole("button", { name: "Really delete?" }).waitFor({ state: "detached" });
});

test("a sandbox is put back to a snapshot, after the page has said what is lost", async () => {
  const { platform, page: open } = console();
  const page = await open();
  const own = await ownSandbox();
  onTestFinished(() => removeSnapshotsOf(own.sandboxId));
  await own.files.write("/home/user/state", "before");
  await own.createSnapshot();
  await own.files.write("/home/user/state", "after");
  await page.goto(`${platform.apiUrl}/console/sandboxes/${own.sandboxId}/snapshots`);
  const rewind = page.getByRole("button", { name: /^Rewind .* to / });
  const snapshotId = (await rewind.getAttribute("aria-label"))?.split(" to ")[1] ?? "";
  await rewind.click();
  const asking = page.getByRole("region", { name: `Rewind to ${snapshotId}`, exact: true });
  await asking.getByText(/^All that its programs have done in the .* since the snapshot/).waitFor();
  await asking.getByText("As code", { exact: true }).click();
  await asking.getByText(`svc sandbox rewind ${own.sandboxId} ${snapshotId}`, { exact: true }).waitFor();
  await asking.getByRole("button", { name: "Rewind the sandbox", exact: true }).click();
  await asking.waitFor({ state: "detached" });
  expect(await own.files.read("/home/user/state")).toBe("before");
  // The state before the rewind was kept as another snapshot.
  await expect.poll(() => rewind.count(), { timeout: 60_000 }).toBe(2);
  await page.getByText(/^The sandbox was put back to it at /).waitFor();
  await page.getByRole("link", { name: "Done here", exact: true }).click();
  await page.getByText(`Rewind ${own.sandboxId} to ${snapshotId}`, { exact: true }).click();
  await page.getByText(`svc sandbox rewind ${own.sandboxId} ${snapshotId}`, { exact: true }).waitFor();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${own.sandboxId}`);
  await page.getByText("Acts as code", { exact: true }).click();
  await page.locator(".as-code select").selectOption({ label: "Kill" });
  await page.getByText(`svc sandbox kill ${own.sandboxId}`, { exact: true }).waitFor();
});

async function removeSnapshotsOf(sandboxId: string): Promise<void> {
  const paginator = Sandbox.listSnapshots({ sandboxId });
  while (paginator.hasNext)
    for (const { snapshotId } of await paginator.nextItems()) await Sandbox.deleteSnapshot(snapshotId);
}

async function killShown(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Kill" }).click();
  const answered = page.waitForResponse((answer) => answer.request().method() === "DELETE");
  await page.getByRole("button", { name: "Really kill?" }).click();
  await page.getByText(/it ended at .*: request/).waitFor();
  // The page shows the end as soon as it begins; what the sandbox was started from is in use until then.
  expect((await answered).ok()).toBe(true);
}
