/** A template is built from a folder in the browser, and a sandbox starts from it. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { sharedConsole } from "../support/browser/browser.ts";
import { api } from "../support/platform/platform.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";

const console = sharedConsole();

const FILES: Readonly<Record<string, string>> = {
  Dockerfile: "FROM base\nLABEL kept=no\nCOPY app /srv/app\nRUN /srv/app/greet.sh > /srv/greeting\n",
  ".dockerignore": "**/*.secret\n",
  "app/greet.sh": "#!/bin/sh\necho built-in-the-browser | tee /dev/stderr\n",
  "app/deep/data.txt": "of the folder\n",
  "app/key.secret": "stays\n",
};

test("a folder with a Dockerfile becomes a template with tags, whose log is followed, and what it ignores stays", async () => {
  const { platform, page: open } = console();
  const folder = await mkdtemp(join(tmpdir(), "svc-browser-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "app/deep"), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/templates`);
  await page.getByRole("link", { name: "Build a template" }).click();
  await page.getByLabel("Name").fill("of-the-browser");
  await page.getByLabel("Folder").setInputFiles(folder);
  await page.getByText("5 files in the folder").waitFor();
  await page.getByRole("button", { name: "Build" }).click();
  await page.getByText("LABEL means nothing to a sandbox").waitFor();
  await page.getByRole("heading", { name: /^Log of build .* ready$/ }).waitFor();
  await page.getByRole("log").getByText("built-in-the-browser").first().waitFor();
  const path = new URL(page.url()).pathname.replace("/console", "");
  onTestFinished(async () => {
    expect((await api(platform, "DELETE", path)).status).toBe(204);
  });
  await page.getByLabel("Tag for the current build").fill("tried");
  await page.getByRole("button", { name: "Put it on" }).click();
  await page.getByRole("button", { name: "Take off tried" }).click();
  await page.getByRole("button", { name: "Really take off?" }).click();
  await page.getByRole("region", { name: "Tags" }).getByText("tried", { exact: true }).waitFor({ state: "detached" });
  const sandbox = killedAfterwards(await Sandbox.create("of-the-browser"));
  const seen = await sandbox.commands.run("cat /srv/greeting /srv/app/deep/data.txt; ls /srv/app");
  expect(seen.stdout).toBe("built-in-the-browser\nof the folder\ndeep\ngreet.sh\n");
});
