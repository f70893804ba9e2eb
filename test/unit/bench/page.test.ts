/** The page of benchmarks, from results as the bench writes them. */

import { expect, test } from "vitest";
import { BUDGETS } from "../../bench/budgets.ts";
import { met, type Row, row } from "../../bench/numbers.ts";
import { pageOf, type Results } from "../../bench/page/page.ts";

const sum = (p50: number) => ({ n: 10, p50, p90: p50 * 2, p99: p50 * 3 });
const docker = (p50: number) => ({ name: "docker run -d + exec", ...sum(p50) });

function resultsOf(rows: readonly Row[]): Results {
  // As test/bench/main.ts writes them.
  const machine = { kernel: "6.1", cores: 2, processor: "a processor", memoryBytes: 24 * 2 ** 30, engine: "26.1" };
  const written = rows.map((one) => ({
    ...one,
    budgets: one.budgets.map((budget) => ({ ...budget, met: met(budget) })),
  }));
  return JSON.parse(
    JSON.stringify({ at: "2026-11-28T01:00:00Z", quick: false, version: "0.1.0", machine, rows: written }),
  ) as Results;
}

const rows = [
  row({
    name: "first command, one by one",
    unit: "ms",
    ours: sum(30),
    baseline: docker(360),
    budgets: [{ says: "p50 ≤ 20 ms", value: 30, limit: 20, better: "less" }],
  }),
  row({ name: "first command, one every 100 ms", unit: "ms", ours: sum(40), baseline: docker(400), budgets: [] }),
  row({ name: "first command, 100 at once", unit: "ms", ours: sum(900), baseline: docker(10_600), budgets: [] }),
  row({ name: "first command, 10 at once", unit: "ms", ours: sum(90), budgets: [] }),
  row({ name: "fork x 1, 16 MB", unit: "ms", ours: sum(990), budgets: [] }),
  row({ name: "fork x 1, 512 MB", unit: "ms", ours: sum(2_000), budgets: [] }),
  row({ name: "fork x 10, 16 MB", unit: "ms", ours: sum(2_800), budgets: [] }),
];

test("has our figures, Docker's and published ones in one table, and every row with its verdict", () => {
  const page = pageOf(resultsOf(rows))["benchmarks.md"];
  expect(page).toContain("| **here** | 30.0 | 40.0 | 900 (100 at once) |");
  expect(page).toContain("| 360 | 400 | 10,600 |");
  expect(page).toMatch(/\| E2B \| \d+ \| \d+ \| \d+ \|/);
  expect(page).toContain("2 cores (a processor), 24 GB, Linux 6.1, Docker 26.1");
  expect(page).toContain("p50 ≤ 20 ms: **missed**");
  for (const { name } of rows) expect(page).toContain(`| ${name} |`);
});

test("lists every budget of the platform's speed, those that the run does not show too", () => {
  const page = pageOf(resultsOf(rows))["benchmarks.md"];
  expect(page).toContain("| first command, one by one | p50 ≤ 20 ms | 30.0 | **missed** |");
  expect(page).toContain("| first command, 100 at once | p99 ≤ 1 500 ms | 2,700 | **missed** |");
  expect(page).toContain("| fork x 10, 512 MB | ≤ 2.5 x one fork | | not shown |");
  for (const { row: name, says } of BUDGETS) expect(page).toContain(`| ${name} | ${says} | `);
});

test("has pictures in the order of the numbers, without points for what was not measured", () => {
  const page = pageOf(resultsOf(rows));
  const places = [...page["benchmarks-at-once.svg"].matchAll(/text-anchor="middle">(\d+)</g)].map(([, place]) => place);
  expect(places).toEqual(["1", "10", "100"]);
  // Three numbers of ours, twice, and two of Docker's.
  expect(page["benchmarks-at-once.svg"].match(/<circle/g)).toHaveLength(8);
  expect(page["benchmarks-fork.svg"].match(/<circle/g)).toHaveLength(3);
  expect(page["benchmarks-fork.svg"]).toContain("10 forks");
});

test("is not made from results in which its subject is missing, and says which measurement to run", () => {
  expect(() => pageOf(resultsOf(rows.slice(1)))).toThrow("first command, one by one");
  expect(() => pageOf(resultsOf(rows.slice(0, 2)))).toThrow("'burst'");
  expect(() => pageOf(resultsOf(rows.slice(0, 4)))).toThrow("'pause'");
});
