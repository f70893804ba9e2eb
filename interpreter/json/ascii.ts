/** JSON in ASCII on one line: clients decode each piece of a stream alone, and some split at every Unicode line end. Pure. */

/** Everything above `~`: UTF-16 units, so that a character outside of the first plane becomes its two halves. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: U+007F is escaped as well.
const NOT_ASCII = /[\u007f-\uffff]/g;
/** Line ends between the tokens of a JSON text; inside of its strings they are escaped already. */
const LINE_ENDS = /[\r\n]+/g;

/** JSON of a value that came from this program. Not for numbers of kernels: `5.0` would become `5`. */
export function asciiJson(value: unknown): string {
  return escaped(JSON.stringify(value));
}

/** The same JSON text in ASCII on one line, its numbers as they were written. */
export function asciiText(json: string): string {
  return escaped(json).replace(LINE_ENDS, " ");
}

function escaped(json: string): string {
  return json.replace(NOT_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
