/**
 * `npm run console:pictures`: takes the pictures of docs/console.md, of the console of a running platform with sandboxes that do
 * something. A release takes them again, so that they show what there is.
 */

import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { type Browser, chromium, type Page } from "playwright-core";
import { logInByLink } from "../support/browser/by-link.ts";
import { api, openPlatform, type Platform } from "../support/platform/platform.ts";

const TO = join(import.meta.dirname, "../../docs/pictures");
const SIZE = { width: 1200, height: 720 };
const MOST_BYTES = 120_000;
const LIMIT_MS = 120_000;

/** Whose agents the sandboxes are for. */
const LABELS = [
  { agent: "code-review", task: "pull-2041" },
  { agent: "data-analysis", task: "q3-revenue" },
  { agent: "code-review", task: "pull-2057" },
  { agent: "web-research", task: "suppliers" },
  { agent: "data-analysis", task: "churn" },
  { agent: "notebook", user: "maria" },
];

const DOCKERFILE = `FROM base
RUN mkdir -p /srv/reports && chown user /srv/reports
RUN python3 -c 'import json, sys; print("python", sys.version)'
ENV REPORTS=/srv/reports
WORKDIR /srv/reports
USER user
`;

const platform = openPlatform();
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox"],
  timeout: LIMIT_MS,
});
const sandboxes: Sandbox[] = [];
try {
  for (const metadata of LABELS) sandboxes.push(await Sandbox.create({ timeoutMs: 3_600_000, metadata }));
  mkdirSync(TO, { recursive: true });
  await takeAll(browser, platform, sandboxes);
} finally {
  await browser.close();
  for (const sandbox of sandboxes) await sandbox.kill();
}

async function takeAll(from: Browser, { apiUrl, adminToken }: Platform, made: readonly Sandbox[]): Promise<void> {
  const [main, paused, other] = made;
  if (main === undefined || paused === undefined || other === undefined) throw new Error("there are too few sandboxes");
  const page = await newPage(from, apiUrl);
  const go = async (path: string) => page.goto(`${apiUrl}/console/${path}`);
  const link = await api(platform, "POST", "/console/link");
  await logInByLink(page, `${apiUrl}${(link.json as { path: string }).path}`);

  await paused.pause();
  await page.getByRole("row").filter({ hasText: paused.sandboxId }).getByText("paused").waitFor();
  await page.getByText(/, live$/).waitFor();
  await take(page, "sandboxes");

  await other.files.write("/home/user/report.py", "import json\nprint(json.dumps({'rows': 1204, 'late': 17}))\n");
  await go(`sandboxes/${other.sandboxId}/terminal`);
  await page.getByText(/^connected, process/).waitFor();
  await page.keyboard.type("ls -l; python3 report.py; uname -sr; nproc; df -h / | tail -1\n");
  await page.locator(".xterm-rows").getByText("1204").first().waitFor();
  await page.locator(".xterm-rows").getByText(/\d%/).first().waitFor();
  await take(page, "terminal");

  await go(`sandboxes/${main.sandboxId}/network`);
  await page.getByRole("textbox", { name: /^May reach/ }).fill("pypi.org\n*.pythonhosted.org");
  await page.getByLabel("May not reach").fill("0.0.0.0/0");
  await page.getByRole("button", { name: "Put into force" }).click();
  await page.getByLabel("Host").fill("api.example.com");
  const check = page.getByRole("status").filter({ hasText: "deny" });
  // The rules are in force when the node has them.
  while ((await check.count()) === 0) {
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByRole("status").waitFor();
  }
  await main.commands.run(
    'for at in 198.51.100.10/443 198.51.100.20/5432; do timeout 2 bash -c "</dev/tcp/$at" || true; done',
  );
  await page.getByRole("row").filter({ hasText: "198.51.100.20:5432" }).first().waitFor();
  await take(page, "network");

  await go(`sandboxes/${main.sandboxId}/snapshots`);
  for (const name of ["before-tests", "after-tests"]) {
    await page.getByLabel("Name").fill(name);
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await page.getByText(`${name}:default`).waitFor();
  }
  for (const name of ["before-tests", "before-tests", "after-tests"]) {
    sandboxes.push(await Sandbox.create(name, { timeoutMs: 600_000 }));
  }
  await page.reload();
  await page.getByRole("list", { name: /^Sandboxes from .*after-tests/ }).waitFor();
  await take(page, "snapshots");

  await go(`sandboxes/${main.sandboxId}/metrics`);
  await main.commands.run("timeout 12 python3 -c 'while True: sum(range(10**6))' || true");
  await page.locator("canvas").first().waitFor();
  await take(page, "metrics");

  await go("create");
  await page.getByLabel("May reach").fill("pypi.org");
  await page.getByLabel("May not reach").fill("0.0.0.0/0");
  await page.getByLabel("Labels").fill("agent=data-analysis");
  await page.getByText('"agent": "data-analysis"').first().waitFor();
  await take(page, "create");

  await go("build");
  await page.getByLabel("Name").fill("reports");
  await page.getByLabel("Dockerfile", { exact: true }).fill(DOCKERFILE);
  await page.getByRole("button", { name: "Build" }).click();
  await page.getByRole("heading", { name: /^Log of build .* ready$/ }).waitFor();
  await take(page, "build");
  const { pathname } = new URL(page.url());
  await api(platform, "DELETE", pathname.replace("/console", ""));
  const { json } = await api(platform, "GET", "/snapshots");
  for (const { snapshotID } of json as readonly { snapshotID: string }[])
    await api(platform, "DELETE", `/templates/${encodeURIComponent(snapshotID)}`);

  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("API key").fill(adminToken);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: "Platform" }).waitFor();
  await go("platform");
  await page
    .getByRole("button", { name: /^Drain of / })
    .first()
    .click();
  await page.getByText("was not drained yet").waitFor();
  await take(page, "platform");
}

async function newPage(from: Browser, apiUrl: string): Promise<Page> {
  const context = await from.newContext({ viewport: SIZE, colorScheme: "light", baseURL: apiUrl });
  context.setDefaultTimeout(LIMIT_MS);
  return context.newPage();
}

/** @throws when the picture is larger than what a page of documents should load */
async function take(page: Page, name: string): Promise<void> {
  const path = join(TO, `${name}.png`);
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  const { size } = statSync(path);
  process.stdout.write(`docs/pictures/${name}.png  ${size} bytes\n`);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes, and may have ${MOST_BYTES}`);
}
