/** Substitutes variables in the values of a template's steps, as Docker does in Dockerfiles. Pure: no shell sees them. */

/** A reference that cannot be substituted; the message names it and says why. */
export class SubstitutionError extends Error {}

export type LookUp = (name: string) => string | undefined;

/** Values that variables inside of values make longer, and patterns that are slow to match, must end somewhere. */
const LONGEST_VALUE = 1024 * 1024;
const DEEPEST = 32;
/** Places that patterns may visit for one text: some tens of milliseconds at most. */
const MOST_MATCHING = 500_000;

/**
 * `$NAME` and `${NAME}` become the value, empty for an unknown name; `\$` is a plain `$`. In braces the name may be followed by
 * `-word`, `+word` or `?word`, with a colon before it to count an empty value as none; by `#pattern`, `##pattern`,
 * `%pattern` or `%%pattern`, which take the shortest or longest match off the front or the end; by `/pattern/word` or
 * `//pattern/word`. Words may hold references themselves. Everything else stays as it is: quotes, backslashes, line ends,
 * backticks, `$(…)`, `$1` and a lone `$`.
 * @throws {SubstitutionError} for braces with anything else in them, and where `?` finds no value
 */
export function substitute(text: string, lookUp: LookUp): string {
  const reader = new Reader(text, lookUp);
  return reader.words("", 0);
}

/** Whether the text refers to a variable of this name, at any depth. May say yes too often, never no too often. */
export function refersTo(text: string, name: string): boolean {
  return new RegExp(`\\$\\{?${name}(?!\\w)`).test(text);
}

class Reader {
  readonly #text: string;
  readonly #lookUp: LookUp;
  readonly #matcher = new Matcher();
  #at = 0;

  constructor(text: string, lookUp: LookUp) {
    this.#text = text;
    this.#lookUp = lookUp;
  }

  /** Reads to the end, or up to one of the `stops`, which is left to read. `keepEscapes`: a pattern gets its backslashes. */
  words(stops: string, depth: number, keepEscapes = false): string {
    let result = "";
    while (this.#at < this.#text.length) {
      const next = this.#text[this.#at] ?? "";
      if (stops.includes(next)) break;
      if (next === "\\") result += this.#escape(stops, keepEscapes);
      else if (next === "$") result += this.#reference(depth);
      else {
        result += next;
        this.#at += 1;
      }
      if (result.length > LONGEST_VALUE) throw tooLong(this.#text);
    }
    return result;
  }

  /** Outside of braces only `\$` is an escape; inside also what would end the word. */
  #escape(stops: string, keepEscapes: boolean): string {
    const escaped = this.#text[this.#at + 1] ?? "";
    const special = escaped === "$" || (stops !== "" && escaped !== "" && (stops + "\\").includes(escaped));
    if (!special && !(keepEscapes && escaped !== "")) {
      this.#at += 1;
      return "\\";
    }
    this.#at += 2;
    return keepEscapes ? `\\${escaped}` : escaped;
  }

  #reference(depth: number): string {
    const begin = this.#at;
    this.#at += 1;
    const plain = this.#name();
    if (plain !== "") return this.#lookUp(plain) ?? "";
    if (this.#text[this.#at] !== "{") return "$";
    const whole = () => this.#text.slice(begin, this.#at + 1);
    if (depth >= DEEPEST) throw refused(whole(), `references are nested more than ${DEEPEST} deep`);
    this.#at += 1;
    const name = this.#name();
    if (name === "") throw refused(whole(), "a name must follow '${'; write \\${ for a plain '${'");
    const value = this.#modified(name, depth, whole);
    if (this.#text[this.#at] !== "}") {
      const found = this.#text[this.#at];
      throw refused(whole(), found === undefined ? "'}' is missing" : `'${found}' is not known there`);
    }
    this.#at += 1;
    return value;
  }

  #modified(name: string, depth: number, whole: () => string): string {
    const value = this.#lookUp(name);
    const next = this.#text[this.#at];
    if (next === undefined || next === "}") return value ?? "";
    const operator = this.#operator(whole);
    switch (operator) {
      case "/":
        return this.#replaced(value ?? "", depth);
      case "#":
      case "%":
        return this.#trimmed(value ?? "", operator === "#", depth);
      default:
        return chosen({ name, value, operator, word: this.words("}", depth + 1) });
    }
  }

  #operator(whole: () => string): string {
    const colon = this.#text[this.#at] === ":" ? ":" : "";
    this.#at += colon.length;
    const operator = this.#text[this.#at];
    if (operator === undefined) throw refused(whole(), "'}' is missing");
    if (!(colon === "" ? "-+?#%/" : "-+?").includes(operator))
      throw refused(whole(), `'${colon}${operator}' is not known there`);
    this.#at += 1;
    return colon + operator;
  }

  #trimmed(value: string, front: boolean, depth: number): string {
    const operator = front ? "#" : "%";
    const longest = this.#text[this.#at] === operator;
    if (longest) this.#at += 1;
    const pattern = readPattern(this.words("}", depth + 1, true));
    const letters = Array.from(value);
    const ends = this.#matcher.ends(front ? pattern : pattern.toReversed(), front ? letters : letters.toReversed(), 0);
    if (ends.size === 0) return value;
    const length = [...ends].reduce((best, end) => (longest ? Math.max(best, end) : Math.min(best, end)));
    return (front ? letters.slice(length) : letters.slice(0, letters.length - length)).join("");
  }

  #replaced(value: string, depth: number): string {
    const all = this.#text[this.#at] === "/";
    if (all) this.#at += 1;
    const pattern = readPattern(this.words("/}", depth + 1, true));
    let word = "";
    if (this.#text[this.#at] === "/") {
      this.#at += 1;
      word = this.words("}", depth + 1);
    }
    const letters = Array.from(value);
    const result: string[] = [];
    let size = 0;
    for (let at = 0; at < letters.length; ) {
      const end = [...this.#matcher.ends(pattern, letters, at)].reduce((best, found) => Math.max(best, found), at);
      if (end === at) {
        result.push(letters[at] ?? "");
        at += 1;
        continue;
      }
      result.push(word);
      size += word.length;
      if (size > LONGEST_VALUE) throw tooLong(this.#text);
      at = end;
      if (!all) return result.concat(letters.slice(at)).join("");
    }
    return result.join("");
  }

  #name(): string {
    const [name = ""] = /^[A-Za-z_]\w*/.exec(this.#text.slice(this.#at, this.#at + 256)) ?? [];
    this.#at += name.length;
    return name;
  }
}

/** The forms that ask whether there is a value; with a colon an empty one is none. */
function chosen({
  name,
  value,
  operator,
  word,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly operator: string;
  readonly word: string;
}): string {
  const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
  if (operator.endsWith("+")) return isSet ? word : "";
  if (isSet) return value;
  if (operator.endsWith("-")) return word;
  throw refused(`\${${name}}`, word === "" ? `${name} is not set` : word);
}

type Piece = { readonly is: "any" | "one" } | { readonly is: "text"; readonly text: string };

/** A shell's pattern, in which Docker knows `*`, `?` and a backslash. */
function readPattern(text: string): Piece[] {
  const pieces: Piece[] = [];
  const letters = Array.from(text);
  for (let at = 0; at < letters.length; at++) {
    const next = letters[at] ?? "";
    if (next === "*") pieces.push({ is: "any" });
    else if (next === "?") pieces.push({ is: "one" });
    else if (next === "\\" && at + 1 < letters.length) pieces.push({ is: "text", text: letters[++at] ?? "" });
    else pieces.push({ is: "text", text: next });
  }
  return pieces;
}

/** Matches patterns. A template's author writes pattern and value, so the work of one text has a bound. */
class Matcher {
  #left = MOST_MATCHING;

  /** The ends of all matches from a place on. Holds a set of places for each piece, so that no pattern makes it try twice. */
  ends(pattern: readonly Piece[], text: readonly string[], from: number): Set<number> {
    let ends = new Set([from]);
    for (const piece of pattern) {
      const next = new Set<number>();
      for (const end of ends) {
        if (piece.is === "any") for (let to = end; to <= text.length && !next.has(to); to++) next.add(to);
        else if (end < text.length && (piece.is !== "text" || text[end] === piece.text)) next.add(end + 1);
      }
      this.#left -= ends.size + next.size;
      if (this.#left < 0) throw refused(text.join(""), "its pattern takes too long on a value of this length");
      ends = next;
    }
    return ends;
  }
}

function tooLong(text: string): SubstitutionError {
  return refused(text, `its value is longer than ${LONGEST_VALUE} characters`);
}

function refused(reference: string, why: string): SubstitutionError {
  return new SubstitutionError(`the reference '${reference.slice(0, 200)}' cannot be substituted: ${why}`);
}
