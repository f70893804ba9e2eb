/** Tables as users of kubectl expect them: columns of words, three blanks apart, no lines. Pure. */

import { escapeLine } from "./escape.ts";

export interface Column<T> {
  readonly title: string;
  readonly of: (item: T) => string;
  /** Only with `-o wide`. */
  readonly wide?: true;
  /** The column changes with time alone, as ages do: `--watch` does not print a row again for it. */
  readonly moving?: true;
  /** The word is a state, which has a colour on a terminal. */
  readonly state?: true;
}

const GAP = 3;

export function cells<T>(columns: readonly Column<T>[], item: T): readonly string[] {
  return columns.map(({ of }) => {
    const text = escapeLine(of(item));
    return text === "" ? "-" : text;
  });
}

/** @param paint colours a cell that is not padded yet */
export function lines(
  rows: readonly (readonly string[])[],
  paint: (text: string, column: number, row: number) => string = (text) => text,
): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => width(row[column] ?? ""))));
  return rows.map((row, index) =>
    row
      .map((text, column) => {
        const gap = column === row.length - 1 ? 0 : (widths[column] ?? 0) + GAP - width(text);
        return paint(text, column, index) + " ".repeat(gap);
      })
      .join("")
      .trimEnd(),
  );
}

/** Columns of a terminal that the text takes: characters of East Asian scripts and emoji take two, marks none. */
function width(text: string): number {
  let sum = 0;
  for (const character of text) {
    if (/\p{M}/u.test(character)) continue;
    sum +=
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Extended_Pictographic}！-｠]/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return sum;
}
