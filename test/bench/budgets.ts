/** The budgets that one run of the bench must show, by the rows that show them. Pure. */

import { type Budget, met, type Row } from "./numbers.ts";

interface Limit {
  readonly row: string;
  readonly says: string;
  /** What it limits: a figure of the row, or its median as a share of another one's. Undefined: not measured. */
  readonly value: (own: Row, rows: readonly Row[]) => number | undefined;
  readonly limit: number;
  readonly better: "less" | "more";
}

const least = (row: string, count: number): Limit => ({
  row,
  says: `${count} of ${count}`,
  value: ({ ours }) => ours.n,
  limit: count,
  better: "more",
});

const most = (row: string, of: "p50" | "p99", limit: number, unit = "ms"): Limit => ({
  row,
  says: `${of} ≤ ${limit.toLocaleString("en").replaceAll(",", " ")} ${unit}`,
  value: ({ ours }) => ours[of],
  limit,
  better: "less",
});

/** Of the row's own baseline. */
const share = (row: string, limit: number): Limit => ({
  row,
  says: `≤ ${limit} x`,
  value: ({ ratio }) => ratio,
  limit,
  better: "less",
});

/** Of another row, or of that row's baseline. */
interface Other {
  readonly row: string;
  readonly of: "ours" | "baseline";
  readonly name: string;
}

const than = (row: string, limit: number, other: Other): Limit => ({
  row,
  says: `≤ ${limit} x ${other.name}`,
  value({ ours }, rows) {
    const base = rows.find(({ name }) => name === other.row)?.[other.of]?.p50;
    return base === undefined ? undefined : ours.p50 / base;
  },
  limit,
  better: "less",
});

/** The budgets of the platform's speed at once. Those of other subjects stand in their measurements. */
export const BUDGETS: readonly Limit[] = [
  most("first command, one by one", "p50", 20),
  most("first command, one by one", "p99", 50),
  share("first command, one by one", 0.05),
  most("raw create, POST /v2/sandboxes", "p50", 7),
  share("exec round trip, bash -l -c true", 0.09),
  most("first command, 100 at once", "p50", 700),
  most("first command, 100 at once", "p99", 1_500),
  least("first command, 100 at once", 100),
  share("first command, 100 at once, nothing prepared", 0.3),
  least("first command, 100 at once, nothing prepared", 100),
  most("first command, one every 100 ms, 100 of them", "p50", 40),
  least("first command, one every 100 ms, 100 of them", 100),
  most("first command, one every 100 ms, 100 of them, after a burst", "p50", 40),
  least("first command, one every 100 ms, 100 of them, after a burst", 100),
  share("cold create, envd answering", 0.5),
  share("pause, 16 MB", 1.3),
  share("pause, 128 MB", 1.3),
  share("pause, 512 MB", 1.3),
  most("resume frozen, 16 MB", "p50", 12),
  most("resume frozen, 128 MB", "p50", 12),
  most("resume frozen, 512 MB", "p50", 12),
  than("resume durable, 16 MB", 0.5, {
    row: "resume durable, 16 MB, eager",
    of: "baseline",
    name: "raw runc restore",
  }),
  most("resume durable, 16 MB", "p50", 60),
  than("resume durable, 512 MB", 1.3, { row: "resume durable, 16 MB", of: "ours", name: "the 16 MB one" }),
  most("fork x 1, 16 MB", "p50", 200),
  most("fork x 10, 16 MB", "p50", 500),
  than("fork x 10, 512 MB", 2.5, { row: "fork x 1, 512 MB", of: "ours", name: "one fork" }),
  than("ten forks, disk of 1 GB + 40 000 files", 3, {
    row: "fork, disk of 1 GB + 40 000 files",
    of: "ours",
    name: "one fork",
  }),
  most("rewind, copy ready", "p50", 30),
  most("rewind, no copy ready", "p50", 500),
  most("sandbox, idle, all memory used ÷ 200", "p50", 22, "MB"),
];

interface Shown {
  readonly row: string;
  readonly says: string;
  /** Undefined: the run does not show it. */
  readonly budget: Budget | undefined;
}

/** Each budget of the table, with what the run shows of it. */
export function shown(rows: readonly Row[]): Shown[] {
  return BUDGETS.map(({ row, says, value, limit, better }) => {
    const own = rows.find(({ name }) => name === row);
    const found = own === undefined ? undefined : value(own, rows);
    if (found === undefined || !Number.isFinite(found)) return { row, says, budget: undefined };
    return { row, says, budget: { says, value: found, limit, better } };
  });
}

/** The rows, with the budgets of the table after their own. */
export function withBudgets(rows: readonly Row[]): Row[] {
  const table = shown(rows);
  const of = (name: string) =>
    table.flatMap(({ row, budget }) => (row === name && budget !== undefined ? [budget] : []));
  return rows.map((one) => ({ ...one, budgets: [...one.budgets, ...of(one.name)] }));
}

/** Lines for the end of a run: how many budgets are met, and which ones are missed or not shown. */
export function verdicts(rows: readonly Row[]): string[] {
  const table = shown(rows);
  const missed = table.filter(({ budget }) => budget !== undefined && !met(budget));
  const absent = table.filter(({ budget }) => budget === undefined);
  const line = (verdict: string) => (one: Shown) => `  ${verdict}: ${one.row}: ${one.says}`;
  return [
    `budgets: ${table.length - missed.length - absent.length} met, ${missed.length} missed, ${absent.length} not shown`,
    ...missed.map(line("missed")),
    ...absent.map(line("not shown")),
  ];
}
