/** What ten thousand sandboxes in the list and a thousand changes a second cost a browser. */

import type { Browser } from "playwright-core";
import { logInByLink } from "../../support/browser/by-link.ts";
import { type FrameCosts, frameCosts, percentile, tabMemory } from "../../support/browser/costs.ts";
import {
  beginStorm,
  COUNT,
  linkTo,
  SCROLL,
  startTenThousand,
  type TenThousand,
} from "../../support/browser/ten-thousand.ts";
import { summarise } from "../numbers.ts";
import type { Judged } from "./figures.ts";
import { visit } from "./visit.ts";

const USABLE_MS = 1_000;
/** Of a screen with 60 pictures a second. */
const FRAME_MS = 16;
const FROZEN_MS = 1_000;
/** Some of the thousand changes wait for the database of a machine that the browser keeps busy. */
const LEAST_CHANGES = 900;

export async function measureMany(browser: Browser, rounds: number): Promise<readonly Judged[]> {
  const many = await startTenThousand();
  try {
    return [await usable(browser, many, rounds), ...(await inUse(browser, many))];
  } finally {
    await many.cluster.stop();
  }
}

async function usable(browser: Browser, many: TenThousand, rounds: number): Promise<Judged> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { shown } = await visit(browser, {
      url: `${many.cluster.url}/console/`,
      shows: many.first,
      slower: 1,
      logIn: async (page) => logInByLink(page, await linkTo(many)),
    });
    times.push(shown);
  }
  return {
    name: `the list of ${COUNT} sandboxes is usable after (p90)`,
    unit: "ms",
    value: summarise(times).p90,
    most: USABLE_MS,
  };
}

async function inUse(browser: Browser, many: TenThousand): Promise<readonly Judged[]> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await logInByLink(page, await linkTo(many));
    await page.getByText(`${COUNT} of ${COUNT}, 0 chosen, live`).waitFor({ timeout: 60_000 });
    const calm = await frameCosts(browser, page, () => page.evaluate(SCROLL));
    const memory = await tabMemory(browser, page);
    const endStorm = beginStorm(many);
    let storm: FrameCosts;
    let changes: number;
    try {
      storm = await frameCosts(browser, page, () => page.evaluate(SCROLL));
    } finally {
      changes = await endStorm();
    }
    return [
      ...costsOf("scrolling", calm),
      { name: "memory of the tab: its objects", unit: "MiB", value: memory.heapMb },
      { name: "memory of the tab: its process", unit: "MiB", value: memory.processMb },
      { name: "a storm of changes", unit: "changes/s", value: changes, least: LEAST_CHANGES },
      ...costsOf("scrolling in the storm", storm),
    ];
  } finally {
    await context.close();
  }
}

function costsOf(what: string, { frames, longestTask }: FrameCosts): readonly Judged[] {
  return [
    { name: `${what}: a frame (p95)`, unit: "ms", value: percentile(frames, 0.95), most: FRAME_MS },
    { name: `${what}: the longest task`, unit: "ms", value: longestTask, most: FROZEN_MS },
  ];
}
