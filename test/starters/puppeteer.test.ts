/** Puppeteer on the template browser: Chromium from outside and from inside, and Debian's Firefox from inside. */

import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { archiveOf } from "../matrix/packages.ts";
import { morePackages } from "../support/more-packages/more-packages.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const LIVES = { timeoutMs: 900_000 };

/** @param made an expression of a browser; `puppeteer` and `asked` are there */
const program = (made: string) => `import puppeteer from "puppeteer-core";
const asked = JSON.parse(process.env.ASKED ?? "{}");
const browser = await (${made});
const page = await browser.newPage();
await page.goto("data:text/html,<title>by Puppeteer</title><button onclick='this.textContent=1'>0</button>");
await page.click("button");
console.log(await page.title(), await page.evaluate(() => document.querySelector("button").textContent));
console.log((await page.screenshot()).length > 1000);
await page.close();
process.exit(0);
`;
const SAID = "by Puppeteer 1\ntrue\n";

test("Puppeteer drives Chromium from outside, with the sandbox's token where its traffic is not public", async () => {
  const sandbox = killedAfterwards(
    await Sandbox.create("browser", { ...LIVES, network: { allowPublicTraffic: false } }),
  );
  const file = join(await morePackages(), `outside-${process.pid}.mjs`);
  await writeFile(file, program("puppeteer.connect(asked)"));
  onTestFinished(() => rm(file));
  const headers = {
    "e2b-sandbox-id": sandbox.sandboxId,
    "e2b-sandbox-port": "9222",
    "e2b-traffic-access-token": sandbox.trafficAccessToken ?? "",
  };
  const env = { ...process.env, ASKED: JSON.stringify({ browserURL: platform.sandboxUrl, headers }) };
  expect((await promisify(execFile)(process.execPath, [file], { env })).stdout).toBe(SAID);
});

test("Puppeteer drives both programs from inside, and finds Chromium where it looks", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  const archive = await archiveOf(await morePackages(), ["puppeteer-core"]);
  await sandbox.files.write("work/packages.tar.gz", new Blob([new Uint8Array(archive)]));
  await sandbox.commands.run("tar -xzf packages.tar.gz", { cwd: "/home/user/work", timeoutMs: 120_000 });
  const ways = {
    up: "puppeteer.connect({ browserURL: 'http://localhost:9222' })",
    channel: "puppeteer.launch({ channel: 'chrome' })",
    named: "puppeteer.launch({ executablePath: '/usr/bin/chromium' })",
    firefox: "puppeteer.launch({ browser: 'firefox', executablePath: '/usr/bin/firefox-esr' })",
  };
  for (const [name, made] of Object.entries(ways)) {
    await sandbox.files.write(`work/${name}.mjs`, program(made));
    const { stdout } = await sandbox.commands.run(`node ${name}.mjs`, { cwd: "/home/user/work", timeoutMs: 180_000 });
    expect([name, stdout]).toEqual([name, SAID]);
  }
});
