/**
 * Ten thousand sandboxes in the list, and a thousand changes a second. The figures are printed; what a slow machine cannot change
 * is expected. `npm run bench:console` judges the same figures on a quiet machine.
 */

import { expect, onTestFinished, test } from "vitest";
import { newPage, sharedBrowser } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { type FrameCosts, frameCosts, percentile, tabMemory } from "../support/browser/costs.ts";
import { beginStorm, COUNT, linkTo, SCROLL, startTenThousand } from "../support/browser/ten-thousand.ts";

const browser = sharedBrowser();
/** Processor time of one piece of work: the figure is printed, and only a page that hangs fails. */
const LONGEST_TASK_MS = 5_000;

test("ten thousand sandboxes are listed whole, scroll with few rows in the page, and follow a storm of changes", async () => {
  const many = await startTenThousand();
  const { cluster, first, ids } = many;
  onTestFinished(() => cluster.stop());
  const page = await newPage(browser(), cluster.url);
  await logInByLink(page, await linkTo(many));
  await page.reload();
  await page.getByRole("link", { name: first }).waitFor();
  const usable = await page.evaluate("performance.now()");
  await page.getByText(`${COUNT} of ${COUNT}, 0 chosen, live`).waitFor();
  const whole = await page.evaluate("performance.now()");
  say(`${COUNT} rows: the first after ${ms(usable)}, all after ${ms(whole)}`);
  await page.evaluate("globalThis.elements = new Set(document.querySelectorAll('.rows [data-id]'))");
  expectSmooth("scrolling", await frameCosts(browser(), page, () => page.evaluate(SCROLL)));
  await page.getByRole("link", { name: ids.at(-1) ?? "" }).waitFor();
  const rows = (await page.evaluate(ROWS)) as { readonly count: number; readonly made: number };
  expect(rows.count).toBeLessThan(60);
  expect(rows.made, "elements that scrolling has made").toBe(0);

  const endStorm = beginStorm(many);
  onTestFinished(async () => void (await endStorm()));
  const inStorm = await frameCosts(browser(), page, () => page.evaluate(SCROLL));
  const rate = await endStorm();
  expectSmooth(`scrolling in a storm of ${Math.round(rate)} changes a second`, inStorm);
  await cluster.ask("DELETE", `/sandboxes/${first}`);
  await page.getByText(`${COUNT - 1} of ${COUNT - 1}, 0 chosen, live`).waitFor();
  const { heapMb, processMb, nodes } = await tabMemory(browser(), page);
  say(`memory: objects ${Math.round(heapMb)} MiB, the tab's process ${Math.round(processMb)} MiB; ${nodes} nodes`);
  expect(nodes).toBeLessThan(1_500);
});

const ms = (value: unknown) => `${Math.round(Number(value))} ms`;
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** A frame at 60 Hz has 16 ms: the figure is printed, and only a page that hangs fails. */
const FROZEN_MS = 1_000;
function expectSmooth(what: string, { frames, longestTask }: FrameCosts): void {
  const p95 = percentile(frames, 0.95);
  say(
    `${what}: ${frames.length} frames take p50 ${percentile(frames, 0.5).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms of the ` +
      `processor; the longest task ${ms(longestTask)}`,
  );
  expect(p95).toBeLessThan(FROZEN_MS);
  expect(longestTask).toBeLessThan(LONGEST_TASK_MS);
}

/** Rows in the page, and those whose element was made since the elements were noted. */
const ROWS = `(() => {
  const now = [...document.querySelectorAll(".rows [data-id]")];
  return { count: now.length, made: now.filter((row) => !globalThis.elements.has(row)).length };
})()`;
