/** What a program of a sandbox wants to put into the clipboard, by the sequence OSC 52. Nothing is put there unasked. Pure. */

/** The page drops a longer text and does not ask: nobody can read it before a press. */
const MOST_CHARACTERS = 20_000;
/** What a person who reads the text does not see: controls but tabs and ends of lines, marks of direction and of formats. */
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}]/gu;

/**
 * The text as the question shows it, which is what would be copied. Undefined: there is nothing to ask, as of a program that
 * wants to read the clipboard.
 * @param data of the sequence: which clipboards, a semicolon, and base64
 */
export function wantedText(data: string): string | undefined {
  const base64 = data.slice(data.indexOf(";") + 1);
  if (base64.length > 4 * MOST_CHARACTERS) return undefined;
  let text: string;
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
  const seen = text.replaceAll("\r\n", "\n").replaceAll(UNSEEN, "");
  return seen === "" || seen.length > MOST_CHARACTERS ? undefined : seen;
}
