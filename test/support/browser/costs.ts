/**
 * What a page costs, by the protocol of the browser's developer tools. Time is that of the processor: a machine that does other
 * things meanwhile does not change it, and neither does the tick of a screen.
 */

import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";

export interface FrameCosts {
  /** Milliseconds of the page's main thread between two animation frames, ascending. */
  readonly frames: readonly number[];
  /** Its longest piece of work without a pause. */
  readonly longestTask: number;
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds. */
  readonly ts: number;
  readonly dur?: number;
  /** Of its thread's processor time. */
  readonly tdur?: number;
}

/** Measures while the work is done. The page asks for animation frames meanwhile. */
export async function frameCosts(browser: Browser, page: Page, work: () => Promise<unknown>): Promise<FrameCosts> {
  await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] });
  const trace = await work().then(
    () => browser.stopTracing(),
    async (error: unknown) => {
      await browser.stopTracing();
      throw error;
    },
  );
  const { traceEvents } = JSON.parse(trace.toString()) as { readonly traceEvents: readonly TraceEvent[] };
  return costsOf(traceEvents);
}

function costsOf(events: readonly TraceEvent[]): FrameCosts {
  const ticks = events.filter(({ name }) => name === "FireAnimationFrame");
  const main = ticks[0];
  if (main === undefined) throw new Error("the trace has no animation frame");
  const at = ticks
    .filter(({ pid, tid }) => pid === main.pid && tid === main.tid)
    .map(({ ts }) => ts)
    .sort((a, b) => a - b);
  const tasks = events
    .filter(({ name, pid, tid }) => name === "RunTask" && pid === main.pid && tid === main.tid)
    .map(({ ts, dur = 0, tdur = dur }) => ({ ts, ms: tdur / 1000 }))
    .sort((a, b) => a.ts - b.ts);
  const frames = at.slice(0, -1).map((from, index) => {
    const to = at[index + 1] ?? from;
    return tasks.reduce((sum, { ts, ms }) => (ts >= from && ts < to ? sum + ms : sum), 0);
  });
  return { frames: frames.sort((a, b) => a - b), longestTask: Math.max(0, ...tasks.map(({ ms }) => ms)) };
}

/** Of ascending values. */
export function percentile(values: readonly number[], part: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;
}

export interface TabMemory {
  /** What the page's objects take after the garbage was collected. */
  readonly heapMb: number;
  /** The process of the tab, with its share of what processes share. */
  readonly processMb: number;
  /** Nodes of the document. */
  readonly nodes: number;
}

export async function tabMemory(browser: Browser, page: Page): Promise<TabMemory> {
  const tab = await page.context().newCDPSession(page);
  await tab.send("HeapProfiler.collectGarbage");
  const { usedSize } = await tab.send("Runtime.getHeapUsage");
  const nodes = (await page.evaluate("document.getElementsByTagName('*').length")) as number;
  await tab.detach();
  const whole = await browser.newBrowserCDPSession();
  const { processInfo } = await whole.send("SystemInfo.getProcessInfo");
  await whole.detach();
  const sizes = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => proportionalBytes(id));
  return { heapMb: usedSize / 1_048_576, processMb: Math.max(0, ...sizes) / 1_048_576, nodes };
}

function proportionalBytes(pid: number): number {
  const [, kilobytes] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")) ?? [];
  return Number(kilobytes ?? 0) * 1024;
}
