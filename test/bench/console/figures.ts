/** The figures of the console as tables of its page. Pure. */

import type { Summary } from "../numbers.ts";

export interface Timed {
  readonly name: string;
  readonly bytes: number;
  readonly firstPaint: Summary;
  readonly interactive: Summary;
  readonly shown: Summary;
}

interface Figures {
  readonly sizes: Readonly<Record<string, number>>;
  readonly bounds: Readonly<Record<string, number>>;
  readonly timed: readonly Timed[];
  readonly slower: number;
}

const FROM = "<!-- figures: `npm run bench:console -- --write` -->";
const TO = "<!-- end of the figures -->";

export function tablesOf({ sizes, bounds, timed, slower }: Figures): string {
  return [
    "| part, compressed | KB | bound |",
    "|---|---|---|",
    ...Object.entries(sizes).map(
      ([part, bytes]) => `| ${part} | ${kilobytes(bytes)} | ${kilobytes(bounds[part] ?? 0)} |`,
    ),
    "",
    `| screen, on a processor slowed ${slower}× | loads | first paint | interactive | shows what it is about |`,
    "|---|---|---|---|---|",
    ...timed.map(
      ({ name, bytes, firstPaint, interactive, shown }) =>
        `| ${[name, `${kilobytes(bytes)} KB`, time(firstPaint), time(interactive), time(shown)].join(" | ")} |`,
    ),
  ].join("\n");
}

/** Puts the tables between the marks of the page. @throws {Error} when it has none */
export function intoPage(page: string, tables: string): string {
  const from = page.indexOf(FROM);
  const to = page.indexOf(TO);
  if (from === -1 || to < from) throw new Error("the page has no place for the figures");
  return `${page.slice(0, from + FROM.length)}\n${tables}\n${page.slice(to)}`;
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}

function time({ p50, p90 }: Summary): string {
  return `${Math.round(p50)} ms (p90 ${Math.round(p90)})`;
}
