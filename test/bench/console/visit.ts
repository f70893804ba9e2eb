/** One visit of somebody who has logged in and has nothing of the page stored, measured by the browser itself. */

import type { Browser, CDPSession, Page } from "playwright-core";
import { until } from "../../support/runner/until.ts";

export interface Visit {
  /** Of the page's files, compressed, as they came. */
  readonly bytes: number;
  /** Milliseconds since the navigation began, as the next two. */
  readonly firstPaint: number;
  /** The end of the last piece of work above 50 ms, before which a press of a key would have waited. */
  readonly interactive: number;
  /** The screen shows what it is about. */
  readonly shown: number;
}

export interface Visited {
  readonly url: string;
  /** Text that is there once the screen shows what it is about. */
  readonly shows: string;
  /** So many times the processor is slowed down. */
  readonly slower: number;
  /** Logs in on another page of the same browser. */
  readonly logIn?: (page: Page) => Promise<void>;
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
  return { firstPaint, interactive: Math.max(firstPaint, ...longTasks), shown: shownAt };
})()`;

export async function visit(browser: Browser, { url, shows, slower, logIn }: Visited): Promise<Visit> {
  const context = await browser.newContext();
  try {
    if (logIn !== undefined) {
      const first = await context.newPage();
      await logIn(first);
      await first.close();
    }
    const page = await context.newPage();
    const tab = await context.newCDPSession(page);
    const files = await countFiles(tab);
    await tab.send("Network.setCacheDisabled", { cacheDisabled: true });
    await tab.send("Emulation.setCPUThrottlingRate", { rate: slower });
    await page.addInitScript(watching(shows));
    await page.goto(url);
    // By the debugger: the page's policy allows no evaluation of text.
    const atRest = async () => (await page.evaluate(AT_REST)) as boolean;
    await until(atRest, { what: `a page at rest that shows '${shows}'`, timeoutMs: 60_000, everyMs: 250 });
    const read: Omit<Visit, "bytes"> = await page.evaluate(READ);
    return { ...read, bytes: files.bytes };
  } finally {
    await context.close();
  }
}

/** Counts what comes for the page and its frames. Answers of the console's API are left out: they depend on what there is. */
async function countFiles(tab: CDPSession): Promise<{ bytes: number }> {
  const counted = { bytes: 0 };
  const ofApi = new Set<string>();
  tab.on("Network.requestWillBeSent", ({ requestId, request }) => {
    if (request.url.includes("/console/api/")) ofApi.add(requestId);
  });
  tab.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (!ofApi.has(requestId)) counted.bytes += encodedDataLength;
  });
  await tab.send("Network.enable");
  return counted;
}
