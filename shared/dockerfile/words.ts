/**
 * The words of an instruction, and the values that they mean. Docker takes quotes and backslashes off while it substitutes
 * variables; the platform (`substitute.ts`) keeps both. Pure.
 */

/** A word without a value; the message says why. */
export class WordError extends Error {}

/** Splits at blanks, except between quotes and behind a backslash. Quotes and backslashes stay. */
export function wordsOf(text: string): readonly string[] {
  return text.match(/(?:\\[^]|\\$|"(?:\\[^]|[^"\\])*"?|'[^']*'?|[^\s\\"'])+/g) ?? [];
}

/**
 * The value of a word as the platform substitutes it: without the quotes and backslashes that Docker takes off, and with a
 * backslash before what is no variable.
 * @throws {WordError} for a quote without an end, and for what the platform has no form for
 */
export function valueOf(word: string): string {
  return new Reader(word).read();
}

/** The text as a value in which the platform finds no variable. */
export function plain(text: string): string {
  return text.replaceAll("$", "\\$");
}

class Reader {
  readonly #text: string;
  #at = 0;
  #value = "";

  constructor(text: string) {
    this.#text = text;
  }

  read(): string {
    this.#words(false);
    return this.#value;
  }

  /** Reads to the end; in braces up to the one that closes them. */
  #words(inBraces: boolean): void {
    for (;;) {
      const next = this.#text[this.#at];
      if (next === undefined || (inBraces && next === "}")) return;
      if (next === "'") this.#singleQuotes(inBraces);
      else if (next === '"') this.#doubleQuotes(inBraces);
      else if (next === "$") this.#reference(inBraces);
      else if (next === "\\") {
        this.#literal(this.#text[this.#at + 1] ?? "", inBraces);
        this.#at += 2;
      } else this.#take(1);
    }
  }

  #singleQuotes(inBraces: boolean): void {
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end < 0) throw this.#endless();
    for (const letter of this.#text.slice(this.#at + 1, end)) this.#literal(letter, inBraces);
    this.#at = end + 1;
  }

  #doubleQuotes(inBraces: boolean): void {
    this.#at += 1;
    for (;;) {
      const next = this.#text[this.#at];
      if (next === undefined) throw this.#endless();
      if (next === "$") {
        this.#reference(inBraces);
        continue;
      }
      if (next === '"') {
        this.#at += 1;
        return;
      }
      const escaped = next === "\\" ? (this.#text[this.#at + 1] ?? "") : "";
      const isEscape = escaped === '"' || escaped === "$" || escaped === "\\";
      this.#literal(isEscape ? escaped : next, inBraces);
      this.#at += isEscape ? 2 : 1;
    }
  }

  #reference(inBraces: boolean): void {
    const rest = this.#text.slice(this.#at);
    const [, name] = /^\$([A-Za-z_]\w*)/.exec(rest) ?? [];
    if (name === undefined && !rest.startsWith("${")) {
      this.#literal("$", inBraces);
      this.#at += 1;
      return;
    }
    // In braces a backslash is written twice, elsewhere it would make the variable plain.
    if (!inBraces && this.#value.endsWith("\\"))
      throw new WordError(`'${this.#text}' has a backslash before a variable, which no value can have here`);
    if (name === undefined) return this.#braces(rest);
    this.#at += name.length + 1;
    // What stands behind a quote would become a part of the name.
    const goesOn = /^["'\\]+\w/.test(rest.slice(name.length + 1));
    this.#value += goesOn ? `\${${name}}` : `$${name}`;
  }

  #braces(rest: string): void {
    const [open = "${"] = /^\$\{[A-Za-z_]\w*(?::?[-+?])?/.exec(rest) ?? [];
    this.#take(open.length);
    if (/[-+?]$/.test(open)) this.#words(true);
    else this.#pattern();
    // The platform says that it is missing.
    if (this.#text[this.#at] === "}") this.#take(1);
  }

  /** A pattern, which the platform reads as Docker does. */
  #pattern(): void {
    for (;;) {
      const next = this.#text[this.#at];
      if (next === undefined || next === "}") return;
      if (next === "$") this.#reference(true);
      else if (next === '"' || next === "'") throw new WordError(`'${this.#text}' has a quote in a pattern`);
      else this.#take(next === "\\" ? 2 : 1);
    }
  }

  #literal(letter: string, inBraces: boolean): void {
    const isSpecial = letter === "$" || (inBraces && (letter === "}" || letter === "\\"));
    this.#value += isSpecial ? `\\${letter}` : letter;
  }

  #take(count: number): void {
    this.#value += this.#text.slice(this.#at, this.#at + count);
    this.#at += count;
  }

  #endless(): WordError {
    return new WordError(`'${this.#text}' has a quote without an end`);
  }
}
