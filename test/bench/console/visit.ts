/** One visit of somebody who has logged in and has nothing of the page stored, measured by the browser itself. */

import type { Browser } from "playwright-core";
import { logInByLink } from "../../support/browser/by-link.ts";
import { api, type Platform } from "../../support/platform/platform.ts";
import { until } from "../../support/runner/until.ts";

export interface Visit {
  /** Compressed, as they came. */
  readonly bytes: number;
  /** Milliseconds since the navigation began, as the next two. */
  readonly firstPaint: number;
  /** The end of the last piece of work above 50 ms, before which a press of a key would have waited. */
  readonly interactive: number;
  /** The screen shows what it is about. */
  readonly shown: number;
}

interface Screen {
  readonly path: string;
  /** Text that is there once the screen shows what it is about. */
  readonly shows: string;
  readonly slower: number;
}

/** Time without long work after which the page counts as at rest. */
const REST_MS = 2_000;

/** Notes long work from the beginning on, and when the text came. */
const watching = (shows: string) => `
  globalThis.longTasks = [];
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) longTasks.push(startTime + duration);
  }).observe({ type: "longtask", buffered: true });
  const look = () => {
    if (document.body?.textContent.includes(${JSON.stringify(shows)})) globalThis.shownAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
`;

const AT_REST = `globalThis.shownAt !== undefined && performance.now() > Math.max(shownAt, ...longTasks) + ${REST_MS}`;

const READ = `(() => {
  const firstPaint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const resources = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  // Streams that go on have no size yet, and answers of the API depend on what there is.
  const files = resources.filter(({ name }) => !name.includes("/console/api/"));
  return {
    bytes: files.reduce((sum, { transferSize }) => sum + transferSize, 0),
    firstPaint,
    interactive: Math.max(firstPaint, ...longTasks),
    shown: shownAt,
  };
})()`;

export async function visit(browser: Browser, platform: Platform, { path, shows, slower }: Screen): Promise<Visit> {
  const context = await browser.newContext();
  try {
    const first = await context.newPage();
    const link = await api(platform, "POST", "/console/link");
    await logInByLink(first, `${platform.apiUrl}${(link.json as { path: string }).path}`);
    await first.close();
    const page = await context.newPage();
    const tab = await context.newCDPSession(page);
    await tab.send("Network.enable");
    await tab.send("Network.setCacheDisabled", { cacheDisabled: true });
    await tab.send("Emulation.setCPUThrottlingRate", { rate: slower });
    await page.addInitScript(watching(shows));
    await page.goto(`${platform.apiUrl}/console/${path}`);
    // By the debugger: the page's policy allows no evaluation of text.
    const atRest = async () => (await page.evaluate(AT_REST)) as boolean;
    await until(atRest, { what: `a page at rest that shows '${shows}'`, timeoutMs: 60_000, everyMs: 250 });
    return (await page.evaluate(READ)) as Visit;
  } finally {
    await context.close();
  }
}
