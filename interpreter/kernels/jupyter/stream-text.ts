/**
 * The text of a stream message in pieces, without ever being whole in memory: a program that prints without a pause makes
 * messages of a hundred megabytes. Pure.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const UTF8_CONTINUES = 0b1000_0000;
const UTF8_MASK = 0b1100_0000;
/** `\u` with its four digits. */
const LONGEST_ESCAPE = 6;

/**
 * @param content the JSON of `{"name": …, "text": "…"}`, whose other values have no key `"text":` in them
 * @param longest bytes of a piece, more than those of any escape
 * @throws {SyntaxError} when the text is not well formed
 */
export function* textPieces(content: Buffer, longest: number): Generator<string> {
  const key = content.indexOf('"text":');
  const open = key < 0 ? -1 : content.indexOf(QUOTE, key + 7);
  if (open < 0) throw new SyntaxError("a stream message without text");
  const end = closingQuote(content, open + 1);
  // Half of a character that was escaped as two halves waits for the other one.
  let half = "";
  for (let from = open + 1; from < end; ) {
    const to = from + longest >= end ? end : cut(content, from, from + longest);
    let text = half + (JSON.parse(`"${content.toString("utf8", from, to)}"`) as string);
    half = to < end && /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
    if (half !== "") text = text.slice(0, -1);
    if (text !== "") yield text;
    from = to;
  }
}

function closingQuote(content: Buffer, from: number): number {
  for (let at = content.indexOf(QUOTE, from); at >= 0; at = content.indexOf(QUOTE, at + 1))
    if (backslashesBefore(content, at, from) % 2 === 0) return at;
  throw new SyntaxError("a stream message whose text does not end");
}

/** The last place up to `to` that is inside of no character and no escape. */
function cut(content: Buffer, from: number, to: number): number {
  let at = to;
  while (((content[at] ?? 0) & UTF8_MASK) === UTF8_CONTINUES) at -= 1;
  for (let start = Math.max(from, at - LONGEST_ESCAPE + 1); start < at; start += 1) {
    if (content[start] !== BACKSLASH || backslashesBefore(content, start, from) % 2 === 1) continue;
    const length = content[start + 1] === 0x75 ? LONGEST_ESCAPE : 2;
    if (start + length > at) return start;
  }
  return at;
}

function backslashesBefore(content: Buffer, at: number, from: number): number {
  let count = 0;
  while (at - count - 1 >= from && content[at - count - 1] === BACKSLASH) count += 1;
  return count;
}
