/** A hundred megabytes of output in a terminal of the console, whose page must not freeze meanwhile. */

import type { Page } from "playwright-core";
import { until } from "../../support/runner/until.ts";
import type { Judged } from "./figures.ts";

const BYTES = 100_000_000;
const LIMIT_MS = 900_000;
const FROZEN_MS = 1_000;

const WATCH = `{
  globalThis.longestTask = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) globalThis.longestTask = Math.max(globalThis.longestTask, duration);
  }).observe({ type: "longtask" });
}`;

/** @param page shows a terminal that is connected and has the focus */
export async function measureFlood(page: Page): Promise<readonly Judged[]> {
  await page.evaluate(WATCH);
  const begun = performance.now();
  await page.keyboard.type(`yes 0123456789abcdef | head -c ${BYTES}; echo the-end-$((40 + 2))\n`);
  const rows = page.locator(".xterm-rows");
  await until(async () => (await rows.innerText()).includes("the-end-42"), {
    what: "the end of the output",
    timeoutMs: LIMIT_MS,
    everyMs: 500,
  });
  const seconds = (performance.now() - begun) / 1000;
  const longest = (await page.evaluate("globalThis.longestTask")) as number;
  return [
    { name: "100 MB of output in the terminal take", unit: "s", value: seconds },
    { name: "the longest task meanwhile", unit: "ms", value: longest, most: FROZEN_MS },
  ];
}
