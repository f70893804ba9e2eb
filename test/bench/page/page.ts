/** Makes the page of benchmarks and its two pictures from what `npm run bench` has written. Pure. */

import { shown } from "../budgets.ts";
import { type Budget, met as isMet, type Row } from "../numbers.ts";
import { draw, type Line } from "./picture.ts";
import { PUBLISHED, SOURCE } from "./published.ts";

export interface Results {
  readonly at: string;
  readonly quick: boolean;
  readonly version: string;
  readonly machine: {
    readonly kernel: string;
    readonly cores: number;
    readonly processor?: string;
    readonly memoryBytes: number;
    readonly engine: string;
  };
  readonly rows: readonly (Omit<Row, "budgets"> & {
    readonly budgets: readonly (Budget & { readonly met: boolean })[];
  })[];
}

/** By the name of the file beside the page. */
export type Page = Readonly<Record<"benchmarks.md" | "benchmarks-at-once.svg" | "benchmarks-fork.svg", string>>;

const AT_ONCE = /^first command, (\d+) at once$/;
const FORK = /^fork x (\d+), (\d+) MB$/;

/** @throws {Error} when a row is missing that the page is about */
export function pageOf(results: Results): Page {
  return {
    "benchmarks.md": textOf(results),
    "benchmarks-at-once.svg": atOnce(results),
    "benchmarks-fork.svg": forks(results),
  };
}

function textOf({ at, quick, version, machine, rows }: Results): string {
  const one = need(rows, "first command, one by one");
  const staggered = rows.find(({ name }) => name.startsWith("first command, one every "));
  const burst = bursts(rows).at(-1);
  if (burst === undefined) throw new Error("the results have no row for creates at once: run the measurement 'burst'");
  const gigabytes = Math.round(machine.memoryBytes / 2 ** 30);
  const lines = [
    "# Benchmarks",
    "",
    "<!-- `npm run bench:page` makes this page from the JSON that `npm run bench` writes. -->",
    "",
    `Measured on ${at.slice(0, 10)} with version ${version}: ${machine.cores} cores (${machine.processor ?? "unknown"}), ${gigabytes} GB, ` +
      `Linux ${machine.kernel.split("-")[0]}, Docker ${machine.engine}; client and platform on the one machine.` +
      (quick ? " **A quick run: it shows that the bench works, not how fast the platform is.**" : ""),
    "",
    "## Create to the first command",
    "",
    `The method of [public comparisons](${SOURCE.method}): the time from the create call of the SDK to the answer of the first command, for sandboxes ` +
      "one after the other, started one after the other without waiting, and all at once. Medians in milliseconds.",
    "",
    "| | sequential | staggered | burst |",
    "|---|---|---|---|",
    `| **here** | ${figure(one.ours.p50)} | ${staggered === undefined ? "" : figure(staggered.ours.p50)} | ${figure(burst.row.ours.p50)} (${burst.count} at once) |`,
    `| Docker here: \`docker run -d\` and \`docker exec\` | ${base(one)} | ${base(staggered)} | ${base(burst.row)} |`,
    ...PUBLISHED.map((each) => `| ${each.service} | ${each.sequential} | ${each.staggered} | ${each.burst} |`),
    "",
    `**These do not compare like with like.** The figures of hosted services are those of [${SOURCE.name}](${SOURCE.url}) of ${SOURCE.day}, a hundred ` +
      "sandboxes each, from a runner that reaches them over the internet, staggered by 200 ms. Ours cross no network, and stagger by less; theirs start microVMs or containers for " +
      "any number of customers, ours one customer's containers on one machine.",
    "",
    "![First commands by how many are started at once](benchmarks-at-once.svg)",
    "",
    "![Forks by size of the memory](benchmarks-fork.svg)",
    "",
    "## Budgets",
    "",
    "What the platform is to reach, and what this run shows of it. Why a budget is missed, what was tried and what is left: " +
      "[where the time goes](decisions.md#where-the-time-goes).",
    "",
    "| | budget | measured | |",
    "|---|---|---|---|",
    ...shown(rows).map(budgetLine),
    "",
    "## All figures",
    "",
    "What each row measures: [test/bench](../test/bench/README.md). The ratio is that of the medians, against the baseline of the same run.",
    "",
    "| | unit | n | p50 | p99 | baseline | p50 | ratio | budget |",
    "|---|---|---|---|---|---|---|---|---|",
    ...rows.map(line),
  ];
  return `${lines.join("\n")}\n`;
}

function budgetLine({ row, says, budget }: ReturnType<typeof shown>[number]): string {
  if (budget === undefined) return `| ${row} | ${says} | | not shown |`;
  return `| ${row} | ${says} | ${figure(budget.value)} | ${isMet(budget) ? "met" : "**missed**"} |`;
}

function line({ name, unit, ours, baseline, ratio, budgets }: Results["rows"][number]): string {
  const verdicts = budgets.map(({ says, met }) => `${says}: ${met ? "met" : "**missed**"}`).join("; ");
  const cells = [name, unit, String(ours.n), figure(ours.p50), figure(ours.p99), baseline?.name ?? ""];
  const more = [baseline === undefined ? "" : figure(baseline.p50), ratio === undefined ? "" : figure(ratio), verdicts];
  return `| ${[...cells, ...more].join(" | ")} |`;
}

function atOnce({ rows }: Results): string {
  const all = [{ count: 1, row: need(rows, "first command, one by one") }, ...bursts(rows)];
  return draw({
    title: "From create to the first command, by number at once (median)",
    unit: "ms",
    places: all.map(({ count }) => String(count)),
    lines: [
      { name: "here", values: all.map(({ row }) => row.ours.p50) },
      { name: "here, p99", values: all.map(({ row }) => row.ours.p99) },
      { name: "Docker", values: all.map(({ row }) => row.baseline?.p50) },
    ],
  });
}

function forks({ rows }: Results): string {
  const found = rows.flatMap(({ name, ours }) => {
    const [, count, size] = FORK.exec(name) ?? [];
    return count === undefined ? [] : [{ count: Number(count), size: Number(size), p50: ours.p50 }];
  });
  if (found.length === 0) throw new Error("the results have no forks: run the measurement 'pause'");
  const sizes = [...new Set(found.map(({ size }) => size))].sort((a, b) => a - b);
  const lines = [...new Set(found.map(({ count }) => count))].map((count): Line => {
    const values = sizes.map((size) => found.find((one) => one.size === size && one.count === count)?.p50);
    return { name: count === 1 ? "one fork" : `${count} forks`, values };
  });
  return draw({
    title: "Fork of a running sandbox, by size of its memory (median)",
    unit: "ms",
    places: sizes.map((size) => `${size} MB`),
    lines,
  });
}

function bursts(rows: Results["rows"]) {
  return rows
    .flatMap((row) => {
      const count = AT_ONCE.exec(row.name)?.[1];
      return count === undefined ? [] : [{ count: Number(count), row }];
    })
    .sort((one, other) => one.count - other.count);
}

function need(rows: Results["rows"], name: string): Results["rows"][number] {
  const found = rows.find((one) => one.name === name);
  if (found === undefined) throw new Error(`the results have no row '${name}'`);
  return found;
}

function base(row: Results["rows"][number] | undefined): string {
  return row?.baseline === undefined ? "" : figure(row.baseline.p50);
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}
