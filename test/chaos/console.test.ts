/**
 * kill -9 of the orchestrator, which serves the console, while somebody uses it: a terminal, a log, an upload and a build each go
 * on, or say what was lost.
 */

import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { sharedConsole, terminalShows } from "../support/browser/browser.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { killHard, untilReady } from "../support/platform/programs.ts";
import { removeAfterwards } from "../support/platform/templates.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();
const platform = openPlatform();
/** What a browser writes to its console when a server is not there. */
const expected = /ERR_|Failed to load resource/;
const LIMIT = { timeout: 90_000, interval: 200 };
const TEST_MS = 300_000;

beforeAll(() => untilReady(platform), 90_000);
afterEach(() => untilReady(platform), 90_000);

async function opened(path: string): Promise<Page> {
  const page = await console().page({ expected });
  await page.goto(`${platform.apiUrl}/console/${path}`);
  return page;
}

test(
  "a terminal goes on with the same shell, and says from when to when it shows nothing",
  async () => {
    const { sandboxId } = await ownSandbox({ timeoutMs: 600_000 });
    const page = await opened(`sandboxes/${sandboxId}/terminal`);
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.type("mark=kept-by-this-shell; echo before-$((40 + 2))\n");
    await terminalShows(page, "before-42");
    await killHard(platform, "orchestrator");
    await terminalShows(page, "[no connection from ");
    await page.getByText(/^connected, process/).waitFor();
    await page.keyboard.type("echo $mark-again\n");
    await terminalShows(page, "kept-by-this-shell-again");
    await terminalShows(page, "before-42");
  },
  TEST_MS,
);

test(
  "a log that is followed goes on without a gap, and shows no line twice",
  async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    const page = await opened(`sandboxes/${sandbox.sandboxId}/logs`);
    // Its caller's connection ends with the orchestrator; the program goes on.
    const program = "for each in $(seq 100); do echo line-$each-of-the-log; sleep 0.2; done";
    const running = await sandbox.commands.run(program, { background: true });
    running.wait().catch(() => undefined);
    await page.getByText("line-10-of-the-log").waitFor();
    await killHard(platform, "orchestrator");
    await page.getByText("line-100-of-the-log").waitFor();
    const text = await page.getByRole("log").innerText();
    const lines = [...text.matchAll(/line-(\d+)-of-the-log/g)].map(([, each]) => Number(each));
    expect(lines).toEqual(Array.from({ length: 100 }, (_none, index) => index + 1));
    // What the page could not read meanwhile it reads again.
    await expect.poll(() => page.getByRole("alert").count(), LIMIT).toBe(0);
  },
  TEST_MS,
);

test(
  "an upload is sent again from its beginning, and the file is whole afterwards",
  async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    const page = await opened(`sandboxes/${sandbox.sandboxId}/files`);
    const sizeMb = 150;
    const path = join(await folder(), "large.bin");
    const file = await open(path, "w");
    await file.truncate(sizeMb * 1_048_576);
    await file.close();
    // So slow that the upload is under way when its server is killed.
    const network = await page.context().newCDPSession(page);
    const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 15 * 1_048_576 };
    await network.send("Network.enable");
    await network.send("Network.emulateNetworkConditions", slow);
    await page.getByLabel("Upload").setInputFiles(path);
    await page.getByText("sending large.bin").waitFor();
    const size = async () =>
      (await sandbox.files.list("/home/user")).find(({ name }) => name === "large.bin")?.size ?? 0;
    await expect.poll(size, LIMIT).toBeGreaterThan(0);
    await killHard(platform, "orchestrator");
    await page.getByText("sending large.bin (1 of 1) again from its beginning").waitFor();
    await page.getByText("large.bin was uploaded").waitFor();
    await untilReady(platform);
    expect(await size()).toBe(sizeMb * 1_048_576);
  },
  TEST_MS,
);

test(
  "a build and its log go on to the end",
  async () => {
    const at = await folder();
    const steps = "RUN for each in $(seq 40); do echo step-$each-of-the-build; sleep 0.25; done\n";
    await writeFile(join(at, "Dockerfile"), `FROM base\nCOPY data.txt /srv/data.txt\n${steps}`);
    await writeFile(join(at, "data.txt"), "of the folder\n");
    const page = await opened("build");
    await page.getByLabel("Name").fill("of-the-killed-console");
    await page.getByLabel("Folder").setInputFiles(at);
    await page.getByText("2 files in the folder").waitFor();
    await page.getByRole("button", { name: "Build", exact: true }).click();
    await page.getByRole("log").getByText("step-4-of-the-build").waitFor();
    const template = /templates\/([^?]+)/.exec(page.url())?.[1] ?? "";
    removeAfterwards(platform, template);
    await killHard(platform, "orchestrator");
    await page.getByRole("heading", { name: /^Log of build .* ready$/ }).waitFor();
    const text = await page.getByRole("log").innerText();
    const lines = [...text.matchAll(/^.*? ?step-(\d+)-of-the-build$/gm)].map(([, each]) => Number(each));
    expect(lines).toEqual(Array.from({ length: 40 }, (_none, index) => index + 1));
    // What the page could not read meanwhile it reads again.
    await expect.poll(() => page.getByRole("alert").count(), LIMIT).toBe(0);
  },
  TEST_MS,
);

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "svc-console-"));
  onTestFinished(() => rm(made, { recursive: true }));
  return made;
}
