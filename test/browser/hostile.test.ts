/** A tenant that attacks whoever looks at its sandbox: nothing runs, nothing leaves, nothing is clicked through. */

import type { BrowserContext, Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { sharedConsole, terminalShows } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { ANSWERING, ATTEMPTS, ESCAPES, FILES, hostileAnswers, STRANGE, TEXTS } from "../support/browser/hostile.ts";
import type { Platform } from "../support/platform/platform.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();

/** A text as one word of a shell. */
const word = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

test("labels, file names, contents, logs and commands are shown as text, whatever they are", async () => {
  const { platform, page: open } = console();
  const metadata = Object.fromEntries(TEXTS.map((text, index) => [`hostile${index}`, text]));
  const sandbox = await ownSandbox({ metadata, timeoutMs: 600_000 });
  const names = TEXTS.map((text) => text.replaceAll("/", "|"));
  for (const name of names) await sandbox.files.write(`/home/user/hostile/${name}`, TEXTS.join("\n"));
  const page = await open();
  const go = (path: string) => page.goto(`${platform.apiUrl}/console/${path}`);
  const strange = () => page.locator(STRANGE).count();
  await page.getByText("hostile0=<script>").waitFor();
  expect(await strange()).toBe(0);
  await go(`sandboxes/${sandbox.sandboxId}/raw`);
  await page.getByText("onerror=alert(1)").first().waitFor();
  expect(await strange()).toBe(0);
  await go(`sandboxes/${sandbox.sandboxId}/files`);
  await page.getByLabel("Directory").fill("/home/user/hostile");
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByRole("button", { name: `Open ${names[0] ?? ""}` }).waitFor();
  const shown = await page.getByRole("cell").allTextContents();
  for (const name of names) expect(shown).toContain(name);
  await page.getByRole("button", { name: `Open ${names[0] ?? ""}` }).click();
  await page.getByRole("button", { name: "Save" }).waitFor();
  // The field's code comes after the buttons.
  await page.locator(".cm-line").filter({ hasText: "onerror=alert(1)" }).first().waitFor();
  expect(await strange()).toBe(0);
  await sandbox.commands.run(`printf '%s\\n' ${TEXTS.map(word).join(" ")}`);
  await go(`sandboxes/${sandbox.sandboxId}/logs`);
  const log = page.getByRole("log");
  for (const text of ["onerror=alert(1)", "</pre><iframe", "=HYPERLINK("]) await log.getByText(text).first().waitFor();
  expect(await strange()).toBe(0);
  await sandbox.commands.run(`sleep 600; : ${TEXTS.map(word).join(" ")}`, { background: true });
  await go(`sandboxes/${sandbox.sandboxId}/processes`);
  await page.getByRole("region", { name: "Processes" }).getByText("onerror=alert(1)").first().waitFor();
  expect(await strange()).toBe(0);
});

test("what a program prints neither takes over the page nor types for whoever looks at it", async () => {
  const { platform, page: open } = console();
  const sandbox = await ownSandbox({ timeoutMs: 600_000 });
  await sandbox.files.write(ESCAPES.map((data, index) => ({ path: `/home/user/escapes/${index}`, data })));
  const page = await open();
  const opened: unknown[] = [];
  page.context().on("page", (other) => opened.push(other.url()));
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/terminal`);
  await page.getByText(/^connected, process/).waitFor();
  const title = await page.title();
  await page.keyboard.type("for n in /home/user/escapes/*; do cat $n; done; clear; echo done-$((40 + 2))\n");
  await page.locator(".xterm-rows").getByText("done-42").first().waitFor();
  // What the terminal has typed by itself would be the beginning of this line.
  await page.keyboard.press("Control+c");
  // bash loses letters that arrive while it handles the signal.
  await terminalShows(page, "^C\nuser@sandbox:~$");
  await page.keyboard.type("echo alive-$((40 + 2))\n");
  await page.locator(".xterm-rows").getByText("alive-42").first().waitFor();
  expect([await page.title(), opened]).toEqual([title, []]);
  const wanted = page.getByRole("region", { name: "For the clipboard" });
  await wanted.getByText("taken", { exact: true }).waitFor();
  await wanted.getByRole("button", { name: "Do not, and do not ask again" }).click();
  await wanted.waitFor({ state: "detached" });
  const taken = await sandbox.commands.run("ls /tmp/taken* 2>/dev/null || true");
  expect(taken.stdout).toBe("");
});

test("files of every type are answered as attachments of no type", async () => {
  const { platform, page: open } = console();
  const sandbox = await ownSandbox({ timeoutMs: 600_000 });
  await sandbox.files.write(Object.entries(FILES).map(([name, data]) => ({ path: `/home/user/${name}`, data })));
  const page = await open();
  for (const name of Object.keys(FILES)) {
    const path = `${platform.apiUrl}/console/api/sandboxes/${sandbox.sandboxId}/envd/files?path=/home/user/${name}`;
    const answer = await page.context().request.get(path);
    const {
      "content-type": type,
      "content-disposition": disposition,
      "x-content-type-options": sniff,
    } = answer.headers();
    expect([name, type, disposition, sniff]).toEqual([name, "application/octet-stream", "attachment", "nosniff"]);
  }
});

test("the page of a sandbox's port reaches nothing of the console in the browser of who is logged in", async () => {
  const { platform, page: open } = console();
  const at = platform.apiUrl.replace("127.0.0.1", "localhost");
  const sandbox = await ownSandbox({ timeoutMs: 600_000 });
  await sandbox.files.write("/home/user/www/index.html", "<!doctype html><title>port</title><body></body>");
  await sandbox.commands.run("cd www && exec python3 -m http.server 8000", { background: true });
  const { page: tenant } = await loggedIn(await open(), { platform, at });
  await expect
    .poll(async () => (await tenant.goto(`http://${sandbox.getHost(8000)}/`))?.status(), { timeout: 60_000 })
    .toBe(200);
  const through: string[] = [];
  for (const origin of [platform.apiUrl, at]) {
    for (const [name, body] of Object.entries(ATTEMPTS)) {
      const result = await tenant.evaluate(
        `(async () => {
          const at = ${JSON.stringify(origin)};
          const loads = (tag, src) => new Promise((done) => {
            const element = document.createElement(tag);
            element.onload = () => done(true);
            element.onerror = () => done(false);
            element.src = src;
            document.body.append(element);
          });
          try { return await (async () => { ${body} })() } catch { return false }
        })()`,
      );
      if (result !== false) through.push(`${origin}: ${name}`);
    }
  }
  expect(through).toEqual([]);
  const popup = tenant.context().waitForEvent("page");
  await tenant.evaluate(`void (window.opened = window.open(${JSON.stringify(`${at}/console/`)}))`);
  const seen = await popup;
  await seen.waitForLoadState();
  expect(
    await tenant.evaluate("(() => { try { return window.opened.document !== null } catch { return false } })()"),
  ).toBe(false);
  expect(await seen.evaluate("window.opener === null")).toBe(true);
  await seen.close();
  for (const path of ["/console/logout", "/console/api/v2/sandboxes", "/console/login"]) {
    const answered = tenant.waitForResponse((answer) => answer.url() === at + path);
    await tenant.evaluate(
      `{ const form = document.createElement("form"); form.method = "post"; form.action = ${JSON.stringify(at + path)}; document.body.append(form); form.submit(); }`,
    );
    expect((await answered).status(), path).toBe(403);
    await tenant.waitForURL(at + path);
    await tenant.goto(`http://${sandbox.getHost(8000)}/`);
  }
  for (const origin of [platform.apiUrl, at]) {
    await tenant.goto(`${origin}/console/`);
    await tenant.getByRole("heading", { name: "Sandboxes" }).waitFor();
  }
});

test("the headers that a sandbox's port answers neither end nor replace the log-in of who opens it", async () => {
  const { platform, page: open } = console();
  const at = platform.apiUrl.replace("127.0.0.1", "localhost");
  const answers = Object.entries(hostileAnswers(at));
  const sandbox = await ownSandbox({ timeoutMs: 600_000 });
  const served = Object.fromEntries(answers.map(([, answer], index) => [`/${index}`, answer]));
  await sandbox.files.write([
    { path: "/home/user/answers.json", data: JSON.stringify(served) },
    { path: "/home/user/answering.py", data: ANSWERING },
  ]);
  await sandbox.commands.run("exec python3 answering.py", { background: true });
  const { context } = await loggedIn(await open(), { platform, at });
  const tenant = await context.newPage();
  const port = `http://${sandbox.getHost(8000)}`;
  await expect.poll(async () => (await tenant.goto(`${port}/none`))?.status(), { timeout: 60_000 }).toBe(200);
  const cookies = async () => (await context.cookies(`${at}/console/`)).map(({ name, value }) => `${name}=${value}`);
  const before = await cookies();
  expect(before).toHaveLength(1);
  for (const [index, [name]] of answers.entries()) {
    await tenant.goto(`${port}/${index}`);
    expect(await cookies(), name).toEqual(before);
  }
  await tenant.goto(`${at}/console/`);
  await tenant.getByRole("heading", { name: "Sandboxes" }).waitFor();
});

interface At {
  readonly platform: Platform;
  /** Another name of this machine: cookies of hosts differ. */
  readonly at: string;
}

/** Another page of the same browser, which nobody watches, logged in at `at`. */
async function loggedIn(
  page: Page,
  { platform, at }: At,
): Promise<{ readonly context: BrowserContext; readonly page: Page }> {
  const context = page.context();
  const code = await context.request.post(`${platform.apiUrl}/console/link`, {
    headers: { "x-api-key": platform.apiKey },
  });
  const other = await context.newPage();
  onTestFinished(() => other.close());
  await logInByLink(other, at + ((await code.json()) as { path: string }).path);
  return { context, page: other };
}
