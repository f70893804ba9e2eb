/**
 * A real browser on the console of the running platform. Whatever a page must never do ends its test with a failure: a
 * violation of its policy, an error on its console, a request to another host.
 */

import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { api, openPlatform, type Platform } from "../platform/platform.ts";
import { logInByLink } from "./by-link.ts";

/** Debian's, which `scripts/host/test/chromium` installs. */
const CHROMIUM = "/usr/bin/chromium";
/** For any one thing on a page: a machine with two cores can be busy. */
const LIMIT_MS = 90_000;
/** No screen has so many elements between two places. */
const MOST_PRESSES = 200;

/** Other sets of tests make and remove links of this machine: then Chromium gives up the connections that it is making. */
const OF_THE_MACHINE = /net::ERR_NETWORK_CHANGED/;

export interface Console {
  readonly platform: Platform;
  /** A page of somebody who has logged in by a one-time link; closed when the test is over. */
  readonly page: (options?: PageOptions) => Promise<Page>;
}

/** The pages of the test that runs, and what each has done that no page may do. */
const watched: { readonly context: BrowserContext; readonly wrong: readonly string[] }[] = [];

interface PageOptions {
  /** Another key than the platform's. */
  readonly key?: string;
  readonly theme?: "dark" | "light";
  /** Texts of console errors that the test is about. */
  readonly expected?: RegExp;
}

/** One browser for a file; each page has cookies of its own. */
export function sharedConsole(): () => Console {
  const browser = sharedBrowser();
  return () => {
    const platform = openPlatform();
    return {
      platform,
      async page(options = {}) {
        const page = await newPage(browser(), platform.apiUrl, options);
        const link = await api(
          platform,
          "POST",
          "/console/link",
          options.key === undefined ? {} : { key: options.key },
        );
        await logInByLink(page, `${platform.apiUrl}${(link.json as { path: string }).path}`);
        return page;
      },
    };
  };
}

/** One browser for a file. */
export function sharedBrowser(): () => Browser {
  let opened: Browser | undefined;
  beforeAll(async () => {
    // Root runs the tests, and Chromium's own sandbox does not work for root.
    const args = ["--no-sandbox", "--disable-dev-shm-usage"];
    opened = await chromium.launch({ executablePath: CHROMIUM, args, timeout: LIMIT_MS });
  });
  // Before what `onTestFinished` does: a page still asks for the sandboxes and templates that a test removes there.
  afterEach(async () => {
    const pages = watched.splice(0);
    const wrong = pages.map((page) => [...page.wrong]);
    await Promise.all(pages.map(({ context }) => context.close()));
    for (const each of wrong) expect(each).toEqual([]);
  });
  afterAll(async () => {
    await opened?.close();
  });
  return () => {
    if (opened === undefined) throw new Error("the browser was not started");
    return opened;
  };
}

/** A page that nobody has logged in to, of the console at this address; closed when the test is over. */
export async function newPage(browser: Browser, apiUrl: string, options: PageOptions = {}): Promise<Page> {
  const context = await browser.newContext({ colorScheme: options.theme ?? "dark" });
  context.setDefaultTimeout(LIMIT_MS);
  return watchedPage(context, apiUrl, options.expected);
}

/** Its test fails afterwards when the page has done something wrong. */
async function watchedPage(context: BrowserContext, apiUrl: string, expected?: RegExp): Promise<Page> {
  const wrong: string[] = [];
  watched.push({ context, wrong });
  const page = await context.newPage();
  page.on("console", (message) => {
    const text = `console: ${message.text()} (${message.location().url})`;
    if (message.type() !== "error" || OF_THE_MACHINE.test(text)) return;
    if (expected?.test(text) !== true) wrong.push(text);
  });
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${apiUrl}/`) && !url.startsWith("blob:")) wrong.push(`request to ${url}`);
  });
  return page;
}

/** Violations of the rules of accessibility on the page as it is, one line each. */
export async function violations(page: Page): Promise<string[]> {
  // By the debugger, which the page's policy does not bind.
  const found = (await page.evaluate(`${axe.source}; axe.run(document, { resultTypes: ["violations"] })`)) as {
    readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

/** Those of the theme that the page has, and of the other one. */
export async function violationsInBothThemes(page: Page): Promise<string[]> {
  const found = await violations(page);
  const change = page.getByRole("button", { name: /^(Light|Dark) theme$/ });
  await change.click();
  found.push(...(await violations(page)));
  await change.click();
  return found;
}

/** Goes to an element by the key that goes from one to the next, as whoever has no mouse. */
export async function tabTo(page: Page, target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < MOST_PRESSES; presses++) {
    if (await target.evaluate(isFocused)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${MOST_PRESSES} presses of ${key} do not lead to ${target.toString()}`);
}

/** In the page. */
function isFocused(element: unknown): boolean {
  return (
    (element as { readonly ownerDocument: { readonly activeElement: unknown } }).ownerDocument.activeElement === element
  );
}

/** Waits until the terminal of the page shows the text. */
export async function terminalShows(page: Page, text: string): Promise<void> {
  await expect.poll(() => page.locator(".xterm-rows").innerText(), { timeout: LIMIT_MS }).toContain(text);
}
