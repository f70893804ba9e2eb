/**
 * Makes text harmless for a terminal. What the API and a sandbox say may hold control bytes that move the cursor, set the title or
 * answer for the user, and direction marks that show a text in another order than it has. Pure.
 */

/** C0, DEL, C1, direction marks, invisible characters, line and paragraph separators, and halves of characters. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const EVERY_UNSAFE = new RegExp(UNSAFE.source, "gu");

export function isUnsafe(text: string): boolean {
  return UNSAFE.test(text);
}

/** One line: each unsafe character is shown as its escape. */
export function escapeLine(text: string): string {
  return text.replaceAll(EVERY_UNSAFE, escaped);
}

/** The same, but line breaks and tabs stay. */
export function escapeText(text: string): string {
  return text.replaceAll(EVERY_UNSAFE, (character) =>
    character === "\n" || character === "\t" ? character : escaped(character),
  );
}

/** For JSON and double-quoted YAML: the escape means the same character there, so readers get the text as it was. */
export function escapeQuoted(json: string): string {
  return json.replaceAll(EVERY_UNSAFE, (character) => (character === "\n" ? character : units(character)));
}

function escaped(character: string): string {
  switch (character) {
    case "\n":
      return "\\n";
    case "\r":
      return "\\r";
    case "\t":
      return "\\t";
    default: {
      const code = character.codePointAt(0) ?? 0;
      if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
      return code > 0xffff ? `\\u{${code.toString(16)}}` : units(character);
    }
  }
}

function units(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }).join("");
}
