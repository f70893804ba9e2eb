/** Turns samples into percentiles, percentiles into rows with a ratio and a verdict, and rows into a table. Pure. */

type Unit = "ms" | "MB/s" | "req/s" | "MB" | "% of a core" | "sandboxes";

export interface Summary {
  readonly n: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

interface Baseline extends Summary {
  readonly name: string;
}

/** One budget with the measured value. */
export interface Budget {
  /** The budget as the table prints it, for example `p50 ≤ 20 ms`. */
  readonly says: string;
  readonly value: number;
  readonly limit: number;
  readonly better: "less" | "more";
}

export interface Row {
  readonly name: string;
  readonly unit: Unit;
  readonly ours: Summary;
  readonly baseline?: Baseline;
  /** ours.p50 / baseline.p50. */
  readonly ratio?: number;
  readonly budgets: readonly Budget[];
  readonly note?: string;
}

export function summarise(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  return { n: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

export function row(given: Omit<Row, "ratio">): Row {
  if (given.baseline === undefined) return given;
  return { ...given, ratio: given.ours.p50 / given.baseline.p50 };
}

export function met(budget: Budget): boolean {
  return budget.better === "less" ? budget.value <= budget.limit : budget.value >= budget.limit;
}

const HEAD = ["", "unit", "n", "p50", "p90", "p99", "baseline", "p50", "p90", "p99", "ratio", "budget"];

export function table(rows: readonly Row[]): string {
  const lines = [HEAD, ...rows.flatMap(cells)];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => pad(cell, widths[column] ?? 0, column))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

// A row with several budgets takes one line for each budget.
function cells(one: Row): string[][] {
  const { ours, baseline } = one;
  const verdicts = one.budgets.map(
    (budget) => `${met(budget) ? "met   " : "MISSED"} ${budget.says} (${figure(budget.value)})`,
  );
  const first = [
    one.name,
    one.unit,
    String(ours.n),
    figure(ours.p50),
    figure(ours.p90),
    figure(ours.p99),
    baseline?.name ?? "",
    baseline === undefined ? "" : figure(baseline.p50),
    baseline === undefined ? "" : figure(baseline.p90),
    baseline === undefined ? "" : figure(baseline.p99),
    one.ratio === undefined ? "" : `${figure(one.ratio)} x`,
    verdicts[0] ?? "",
  ];
  const more = verdicts.slice(1).map((verdict) => [...Array.from({ length: first.length - 1 }, () => ""), verdict]);
  return [first, ...more, ...(one.note === undefined ? [] : [[`  ${one.note}`]])];
}

function pad(cell: string, width: number, column: number): string {
  const isText = [0, 1, 6, 11].includes(column);
  return isText ? cell.padEnd(width) : cell.padStart(width);
}

function figure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toFixed(digits);
}
