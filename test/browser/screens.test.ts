/** Every screen of the console: its main act, and its accessibility in both themes. */

import { Secret, Volume } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { sharedConsole, violations, violationsInBothThemes } from "../support/browser/browser.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();

/** Each screen, and what it shows once it has loaded. */
const SCREENS: Readonly<Record<string, RegExp>> = {
  "": /, live$/,
  create: /^TypeScript/,
  templates: /no template of its own|^Last$/,
  "templates/base": /^Tag for/,
  build: /^Command/,
  snapshots: /has no snapshot|^Stored$/,
  volumes: /has no volume|^Acts$/,
  secrets: /has no secret|^Version$/,
  events: /^live$/,
  webhooks: /is sent anywhere|^State$/,
  project: /^Last used$/,
  done: /^Nothing was done yet/,
};
const TABS: Readonly<Record<string, RegExp>> = {
  timeline: /^created$/,
  terminal: /^connected, process/,
  screen: /^This sandbox has no screen/,
  logs: /^Search$/,
  files: /^Mode$/,
  metrics: /^Processors: /,
  processes: /No program runs|^Command$/,
  network: /opened no connection|^Verdict$/,
  snapshots: /No snapshot was taken/,
  raw: /^TypeScript/,
};

test.each(["dark", "light"] as const)("no screen of the %s theme breaks a rule of accessibility", async (theme) => {
  const { platform, page: open } = console();
  const { sandboxId } = await ownSandbox({ timeoutMs: 600_000 });
  const page = await open({ theme });
  const broken: Record<string, string[]> = {};
  const tabs = Object.entries(TABS).map(([tab, shown]) => [`sandboxes/${sandboxId}/${tab}`, shown] as const);
  for (const [path, shown] of [...Object.entries(SCREENS), ...tabs]) {
    await page.goto(`${platform.apiUrl}/console/${path}`);
    await page.getByText(shown).first().waitFor();
    const found = await violations(page);
    if (found.length > 0) broken[path] = found;
  }
  await page.keyboard.press("Control+k");
  const inPalette = await violations(page);
  if (inPalette.length > 0) broken["palette"] = inPalette;
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("API key").waitFor();
  const atLogin = await violations(page);
  if (atLogin.length > 0) broken["login"] = atLogin;
  expect(broken).toEqual({});
});

test("what a screen asks by itself ends before the log-out, so nothing of it is refused", async () => {
  const { platform, page: open } = console();
  const page = await open();
  // The answer to the log-out is late: the session has ended, and a list that asked meanwhile would be refused.
  await page.route("**/console/logout", async (route) => {
    const answer = await route.fetch();
    await page.waitForTimeout(6_000);
    await route.fulfill({ response: answer });
  });
  await page.goto(`${platform.apiUrl}/console/templates/base`);
  await page.getByRole("heading", { name: "Builds" }).waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("API key").waitFor();
  expect(await page.getByText("The session has ended").count()).toBe(0);
});

test("secrets, volumes and keys are made and removed, and their values are not shown again", async () => {
  const { platform, page: open } = console();
  const page = await open();
  const go = (path: string) => page.goto(`${platform.apiUrl}/console/${path}`);
  const remove = async (name: string, word: string) => {
    await page.getByRole("button", { name, exact: true }).click();
    await page.getByRole("button", { name: `Really ${word}?` }).click();
    await page.getByRole("button", { name: `Really ${word}?` }).waitFor({ state: "detached" });
    await page.getByRole("button", { name, exact: true }).waitFor({ state: "detached" });
  };
  await go("secrets");
  await page.getByLabel("Name").fill("of-the-browser");
  await page.getByLabel("Value").fill("hunter2-of-the-browser");
  await page.getByRole("button", { name: "Store" }).click();
  await page.getByRole("button", { name: "Delete of-the-browser" }).waitFor();
  expect(await page.content()).not.toContain("hunter2");
  await remove("Delete of-the-browser", "delete");
  await go("volumes");
  await page.getByLabel("Name").fill("of-the-browser");
  await page.getByRole("button", { name: "Create a volume" }).click();
  await remove("Delete of-the-browser", "delete");
  await go("project");
  await page.getByLabel("Name").fill("of the browser");
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByText(/^svc_[0-9a-f]{40}$/).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Revoke of the browser", exact: true }).waitFor();
  expect(await page.getByText(/^svc_[0-9a-f]{40}$/).count()).toBe(0);
  await remove("Revoke of the browser", "revoke");
});

test("a volume's files are uploaded, shown, downloaded and deleted", async () => {
  const { platform, page: open } = console();
  const page = await open();
  const volume = await Volume.create("of-the-browser-files");
  onTestFinished(async () => void (await Volume.destroy(volume.volumeId)));
  await page.goto(`${platform.apiUrl}/console/volumes`);
  await page.getByRole("link", { name: "of-the-browser-files" }).click();
  await page.getByText("/ is empty.").waitFor();
  await page.getByLabel("New directory").fill("pages");
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("button", { name: "pages/" }).click();
  const file = { name: "evil.html", mimeType: "text/html", buffer: Buffer.from("<script>alert(1)</script>") };
  await page.getByLabel("Upload").setInputFiles(file);
  await page.getByText("evil.html was uploaded").waitFor();
  expect(await volume.readFile("/pages/evil.html")).toBe("<script>alert(1)</script>");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Download evil.html" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("evil.html");
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.getByRole("button", { name: "Delete evil.html" }).click();
  await page.getByRole("button", { name: "Really delete?" }).click();
  await page.getByText("/pages is empty.").waitFor();
});

test("the hosts of a secret, the members of a project and who did what are shown", async () => {
  const { platform, page: open } = console();
  const page = await open();
  const name = "of-the-browser-hosts";
  await Secret.create(name, "hunter2-of-the-browser");
  onTestFinished(async () => void (await Secret.destroy(name)));
  const rules = { "api.example": [{ transform: { headers: { authorization: `Bearer \${e2b.secrets.${name}}` } } }] };
  const { sandboxId } = await ownSandbox({ network: { rules } });
  await page.goto(`${platform.apiUrl}/console/secrets`);
  await page.getByRole("button", { name: `Hosts of ${name}` }).click();
  const row = page.getByRole("row").filter({ hasText: "api.example" });
  await row.getByRole("link", { name: sandboxId }).waitFor();
  await page.getByRole("button", { name: `Delete ${name}` }).click();
  await page.getByRole("button", { name: "Really delete?" }).click();
  await page.getByRole("region", { name: `Where ${name} goes` }).waitFor({ state: "detached" });
  await page.goto(`${platform.apiUrl}/console/project`);
  await page.getByRole("heading", { name: "Members" }).waitFor();
  await page.getByRole("region", { name: "Audit log of the project" }).getByText("logIn").first().waitFor();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandboxId}`);
  await page.getByRole("region", { name: "Who changed the sandbox" }).getByText("create").first().waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
});

test("a webhook is made, tested and deleted; templates and events are shown", async () => {
  const { platform, page: open } = console();
  const page = await open();
  const go = (path: string) => page.goto(`${platform.apiUrl}/console/${path}`);
  await go("webhooks");
  await page.getByLabel("Name").fill("of the browser");
  await page.getByLabel("URL").fill("http://hook.invalid/");
  await page.getByLabel("Secret of its signatures").fill("a-secret-of-the-browser");
  await page.getByRole("button", { name: "Create a webhook" }).click();
  await page.getByRole("row").filter({ hasText: "hook.invalid" }).getByRole("button", { name: "Test" }).click();
  await page.getByRole("button", { name: "Deliveries to of the browser" }).click();
  await page.getByRole("cell", { name: "webhook.test" }).waitFor();
  await page.getByRole("button", { name: "Delete of the browser" }).click();
  await page.getByRole("button", { name: "Really delete?" }).click();
  await page.getByText("hook.invalid").waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Deliveries" }).waitFor({ state: "detached" });
  await go("templates/base");
  await page.getByRole("heading", { name: "Builds" }).waitFor();
  await go("events");
  await page.getByText("live", { exact: true }).waitFor();
  const sandbox = await ownSandbox();
  await page.getByRole("row").filter({ hasText: sandbox.sandboxId }).getByText("created").waitFor();
});

test("an operator sees nodes and the audit log, and chooses a project", async () => {
  const { platform, page: open } = console();
  const page = await open();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("API key").fill(platform.adminToken);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: "Platform" }).click();
  await page.getByRole("region", { name: "Nodes" }).getByText("ready").waitFor();
  await page.getByRole("region", { name: "Audit log" }).waitFor();
  await page
    .getByRole("button", { name: /^Details of / })
    .first()
    .click();
  const details = page.getByRole("region", { name: /^Details of / });
  await details.getByText("Clock", { exact: true }).waitFor();
  await details.getByText("Lease", { exact: true }).waitFor();
  await details.getByText("memory snapshots", { exact: true }).waitFor();
  await details.getByRole("heading", { name: "Sandboxes on it" }).waitFor();
  await page.getByRole("heading", { name: "Alerts", exact: true }).waitFor();
  await page
    .getByRole("button", { name: /^Doctor’s report of / })
    .first()
    .click();
  const doctor = page.getByRole("region", { name: /^Doctor’s report of / });
  // The checks take some seconds, twice as many where the first look finds something.
  await doctor.getByText(/ passed(, \d+ could not be seen)?; looked at /).waitFor({ timeout: 90_000 });
  await doctor.getByText("What passed").click();
  await doctor.getByText("files: files.missing").waitFor();
  await doctor.getByRole("button", { name: "Look again" }).click();
  await doctor.getByText(/looks at its machine/).waitFor();
  await doctor.getByText(/; looked at /).waitFor({ timeout: 90_000 });
  await page
    .getByRole("button", { name: /^Drain of / })
    .first()
    .click();
  await page.getByRole("button", { name: "Begin the drain" }).waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  const sandbox = await ownSandbox();
  await page.getByRole("button", { name: "Look at it: project default" }).first().click();
  await page.getByText(/, live$/).waitFor();
  await page.getByLabel("Node").selectOption({ index: 1 });
  await page.getByRole("row").filter({ hasText: sandbox.sandboxId }).waitFor();
});
