/** Patterns of names as Docker reads them, in COPY and in .dockerignore. Pure. */

export interface Piece {
  /** As it is written. */
  readonly written: string;
  /** For a regular expression with the flags `su`. */
  readonly text: string;
}

/**
 * What a pattern begins with: `*` and `?` stand for any letters and one, `[a-c]` and `[^a-c]` for one of a range and one outside, `\` for
 * the letter after it. None of them stands for `/`. Undefined: it is no pattern.
 */
export function pieceOf(pattern: string): Piece | undefined {
  const [written, letters, not = "", range] =
    /^(?:(\*+|\?)|\[(\^?)((?:\\.|[^\]\\])+)\]|\\.|[^[\\])/su.exec(pattern) ?? [];
  if (written === undefined) return undefined;
  if (letters !== undefined) return { written, text: letters === "?" ? "[^/]" : "[^/]*" };
  if (range !== undefined) return { written, text: `(?!/)[${not}${range.replaceAll(/\\(.)|([[^])/gsu, classLetter)}]` };
  return { written, text: literal(written.length > 1 && written.startsWith("\\") ? written.slice(1) : written) };
}

/** The expression that matches the whole of a text; undefined: one of its ranges is none, such as `[z-a]`. */
export function wholly(text: string): RegExp | undefined {
  try {
    return new RegExp(`^(?:${text})$`, "su");
  } catch {
    return undefined;
  }
}

function classLetter(_all: string, escaped?: string, special?: string): string {
  return escaped === "-" ? "\\-" : literal(escaped ?? special ?? "");
}

function literal(letter: string): string {
  return /[\^$\\.*+?()[\]{}|/]/.test(letter) ? `\\${letter}` : letter;
}
