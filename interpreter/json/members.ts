/** The members of a JSON object as the text they were written in, so that numbers pass through unharmed. Pure. */

/**
 * Member name → source text of its value. Of a name that occurs twice the last one counts, as in `JSON.parse`.
 * @throws {SyntaxError} when the text is no JSON object
 */
export function members(json: string): Map<string, string> {
  // Checks the whole text, so that the scan below meets only what is well formed.
  const value: unknown = JSON.parse(json);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new SyntaxError("not a JSON object");
  const found = new Map<string, string>();
  let at = skipSpace(json, 0) + 1;
  for (;;) {
    at = skipSpace(json, at);
    if (json[at] === "}") return found;
    if (json[at] === ",") at = skipSpace(json, at + 1);
    const nameEnd = stringEnd(json, at);
    const name = JSON.parse(json.slice(at, nameEnd)) as string;
    at = skipSpace(json, skipSpace(json, nameEnd) + 1);
    const end = valueEnd(json, at);
    found.set(name, json.slice(at, end));
    at = end;
  }
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (json[at] === " " || json[at] === "\n" || json[at] === "\r" || json[at] === "\t") at += 1;
  return at;
}

/** Position behind the string that begins at `from`. */
function stringEnd(json: string, from: number): number {
  let at = from + 1;
  for (;;) {
    const quote = json.indexOf('"', at);
    let slashes = 0;
    while (json[quote - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

/** Position behind the value that begins at `from`. */
function valueEnd(json: string, from: number): number {
  if (json[from] === '"') return stringEnd(json, from);
  let depth = 0;
  let at = from;
  for (;;) {
    const sign = json[at];
    if (sign === '"') at = stringEnd(json, at) - 1;
    else if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (sign === "," || sign === " " || sign === "\n" || sign === "\r" || sign === "\t"))
      return at;
    at += 1;
  }
}
