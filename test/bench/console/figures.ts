/** The figures of the console as tables of its page, each with what it should be. Pure. */

import type { Summary } from "../numbers.ts";

export interface Timed {
  readonly name: string;
  readonly bytes: number;
  readonly firstPaint: Summary;
  readonly interactive: Summary;
  readonly shown: Summary;
}

/** A figure with a bound. */
export interface Judged {
  readonly name: string;
  readonly unit: "ms" | "MiB" | "s" | "changes/s";
  readonly value: number;
  /** Undefined: it is stated, and not judged. */
  readonly most?: number;
  readonly least?: number;
}

interface Figures {
  /** Bytes of each part, compressed. */
  readonly sizes: Readonly<Record<string, number>>;
  readonly bounds: Readonly<Record<string, number>>;
  /** Bytes of each file, compressed. */
  readonly files: Readonly<Record<string, number>>;
  readonly timed: readonly Timed[];
  readonly slower: number;
  readonly judged: readonly Judged[];
}

const FROM = "<!-- figures: `npm run bench:console -- --write` -->";
const TO = "<!-- end of the figures -->";

export function tablesOf({ sizes, bounds, files, timed, slower, judged }: Figures): string {
  return [
    "| part, compressed | KB | bound |",
    "|---|---|---|",
    ...Object.entries(sizes).map(
      ([part, bytes]) => `| ${part} | ${kilobytes(bytes)} | ${kilobytes(bounds[part] ?? 0)} |`,
    ),
    "",
    `Every file, in KB: ${Object.entries(files)
      .map(([file, bytes]) => `${file} ${kilobytes(bytes)}`)
      .join(", ")}.`,
    "",
    `| a first visit, on a processor slowed ${slower}× | loads | first paint | interactive | shows what it is about |`,
    "|---|---|---|---|---|",
    ...timed.map(
      ({ name, bytes, firstPaint, interactive, shown }) =>
        `| ${[name, `${kilobytes(bytes)} KB`, time(firstPaint), time(interactive), time(shown)].join(" | ")} |`,
    ),
    "",
    "| much of it, on a processor of full speed | is | should be |",
    "|---|---|---|",
    ...judged.map((each) => `| ${each.name} | ${told(each.value, each.unit)} | ${boundOf(each)} |`),
  ].join("\n");
}

/** What is not as it should be, one sentence each. */
export function beyond(judged: readonly Judged[]): string[] {
  return judged
    .filter(({ value, most = Infinity, least = -Infinity }) => !(value <= most && value >= least))
    .map((each) => `${each.name}: ${told(each.value, each.unit)}, and should be ${boundOf(each)}`);
}

/** Puts the tables between the marks of the page. @throws {Error} when it has none */
export function intoPage(page: string, tables: string): string {
  const from = page.indexOf(FROM);
  const to = page.indexOf(TO);
  if (from === -1 || to < from) throw new Error("the page has no place for the figures");
  return `${page.slice(0, from + FROM.length)}\n${tables}\n${page.slice(to)}`;
}

function boundOf({ most, least, unit }: Judged): string {
  if (most !== undefined) return `≤ ${told(most, unit)}`;
  return least === undefined ? "–" : `≥ ${told(least, unit)}`;
}

function told(value: number, unit: Judged["unit"]): string {
  return `${value < 100 && !Number.isInteger(value) ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}

function time({ p50, p90 }: Summary): string {
  return `${Math.round(p50)} ms (p90 ${Math.round(p90)})`;
}
