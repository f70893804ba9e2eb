/**
 * Ten thousand sandboxes in the list, and a thousand changes a second, over an orchestrator of its own with a simulated node. The
 * figures are printed; what a slow machine cannot change is expected.
 */

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { newExecutionId, newSandboxId } from "../../shared/ids.ts";
import { newPage, sharedBrowser } from "../support/browser/browser.ts";
import { logInByLink } from "../support/browser/by-link.ts";
import { type FrameCosts, frameCosts, percentile, tabMemory } from "../support/browser/costs.ts";
import { type Cluster, startCluster } from "../support/cluster/cluster.ts";

const browser = sharedBrowser();
const COUNT = 10_000;
/** Rows of one statement: SQLite takes 32 766 values at most. */
const AT_ONCE = 250;
const DAY_MS = 86_400_000;
/** Processor time of one piece of work: the figure is printed, and only a page that hangs fails. */
const LONGEST_TASK_MS = 5_000;

test("ten thousand sandboxes are listed whole, scroll with few rows in the page, and follow a storm of changes", async () => {
  // The simulated node reports none of the copies.
  const config = { reconcileEveryMs: DAY_MS, expiryEveryMs: DAY_MS, missingGraceMs: DAY_MS };
  const cluster = await startCluster({ onSqlite: true, config });
  onTestFinished(() => cluster.stop());
  const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } });
  const { sandboxID: first } = made.body as { sandboxID: string };
  const ids = await copies(cluster, "sandboxes", COUNT - 1, (row, index) => ({
    ...row,
    id: newSandboxId(),
    execution_id: newExecutionId(),
    started_at: Number(row["started_at"]) - 1000 * (index + 1),
    end_at: Number(row["end_at"]) + DAY_MS,
  }));
  const page = await newPage(browser(), cluster.url);
  const { path } = (await cluster.ask("POST", "/console/link")).body as { path: string };
  await logInByLink(page, `${cluster.url}${path}`);
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

  const changes: Promise<void>[] = [];
  const storm = setInterval(() => changes.push(change(cluster, first, ids)), 100);
  onTestFinished(() => clearInterval(storm));
  expectSmooth("scrolling in a storm of changes", await frameCosts(browser(), page, () => page.evaluate(SCROLL)));
  clearInterval(storm);
  await Promise.all(changes);
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

/** Scrolls through the list in three seconds. */
const SCROLL = `new Promise((resolve) => {
  const list = document.querySelector(".rows");
  const most = list.scrollHeight - list.clientHeight;
  const begun = performance.now();
  const frame = (now) => {
    const part = Math.min(1, (now - begun) / 3000);
    list.scrollTop = part * most;
    if (part < 1) requestAnimationFrame(frame);
    else resolve();
  };
  requestAnimationFrame(frame);
})`;

/** A hundred changes, of which the last one is the platform's own and makes it look. */
async function change(cluster: Cluster, id: string, of: readonly string[]): Promise<void> {
  const count = 99;
  const [order] = await cluster.database.query(`update event_order set last = last + ${count} returning last`);
  const last = Number(order?.["last"]);
  await copies(cluster, "events", count, (row, index) => ({
    ...row,
    id: randomUUID(),
    sequence: last - index,
    sandbox_id: of[(last - index) % of.length],
  }));
  await cluster.ask("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 3600 } });
}

type Row = Record<string, unknown>;

/** Stores copies of a row of the table. Resolves with their ids. */
async function copies(
  { database }: Cluster,
  table: "sandboxes" | "events",
  count: number,
  copy: (row: Row, index: number) => Row,
): Promise<string[]> {
  const [like] = await database.query(`select * from ${table} limit 1`);
  const made = Array.from({ length: count }, (_none, index) => copy(like ?? {}, index));
  const columns = Object.keys(made[0] ?? {});
  const values = `(${columns.map(() => "?").join(", ")})`;
  for (let from = 0; from < count; from += AT_ONCE) {
    const rows = made.slice(from, from + AT_ONCE);
    await database.query(
      `insert into ${table} (${columns.join(", ")}) values ${rows.map(() => values).join(", ")}`,
      ...rows.flatMap((row) => columns.map((name) => row[name])),
    );
  }
  return made.map(({ id }) => String(id));
}
