/** Finds the marks that the shell writes between the output of two commands, and cuts the output into lines. Pure. */

/** Text of a command, or the mark behind it with the command's exit status. */
export type Part = { readonly text: string } | { readonly done: string; readonly status: number };

/** No program prints this control character by chance; the nonce keeps apart what a program prints on purpose. */
const SIGN = "\u001e";
const LONGEST_NUMBERS = 24;

/** What the shell prints behind the command with this number. */
export function markOf(nonce: string, number: string, status: string): string {
  return `${SIGN}${nonce} ${number} ${status}${SIGN}`;
}

export class Marks {
  readonly #begin: string;
  #rest = "";

  constructor(nonce: string) {
    this.#begin = `${SIGN}${nonce} `;
  }

  /** Keeps back what may be the beginning of a mark. */
  feed(piece: string): Part[] {
    const parts: Part[] = [];
    let text = this.#rest + piece;
    this.#rest = "";
    for (let at = text.indexOf(SIGN); at >= 0; at = text.indexOf(SIGN)) {
      if (at > 0) parts.push({ text: text.slice(0, at) });
      text = text.slice(at);
      const mark = this.#markAt(text);
      if (mark === "unfinished") {
        this.#rest = text;
        return parts;
      }
      parts.push(mark?.part ?? { text: SIGN });
      text = text.slice(mark?.length ?? 1);
    }
    if (text !== "") parts.push({ text });
    return parts;
  }

  /** Undefined when the text begins with no mark. */
  #markAt(text: string): { readonly part: Part; readonly length: number } | "unfinished" | undefined {
    if (!text.startsWith(this.#begin)) return this.#begin.startsWith(text) ? "unfinished" : undefined;
    const numbers = text.slice(this.#begin.length, this.#begin.length + LONGEST_NUMBERS);
    const end = numbers.indexOf(SIGN);
    if (end < 0) return numbers.length < LONGEST_NUMBERS ? "unfinished" : undefined;
    const [, done, status] = /^(\d+) (\d+)$/.exec(numbers.slice(0, end)) ?? [];
    if (done === undefined) return undefined;
    return { part: { done, status: Number(status) }, length: this.#begin.length + end + SIGN.length };
  }
}

/** A line that does not end is handed on when it is so long. */
const LONGEST_LINE = 64 * 1024;

export class Lines {
  #rest = "";

  /** Whether no line has begun that has not ended. */
  get isWhole(): boolean {
    return this.#rest === "";
  }

  /** Whole lines, each with its `\n`. */
  feed(text: string): string[] {
    const all = (this.#rest + text).split("\n");
    const rest = all.pop() ?? "";
    const lines = all.map((line) => `${line.endsWith("\r") ? line.slice(0, -1) : line}\n`);
    this.#rest = rest.length > LONGEST_LINE ? "" : rest;
    if (rest.length > LONGEST_LINE) lines.push(rest);
    return lines;
  }

  /** The line that has not ended. */
  flush(): string[] {
    const rest = this.#rest;
    this.#rest = "";
    return rest === "" ? [] : [rest];
  }
}
