/** Pure: the query of a URL. Percent-encoded bytes that are not UTF-8 are the bytes of a file's name. */

import { writtenBy } from "../system/file-names.ts";

export function queryOf(search: string): URLSearchParams {
  const decoded = new URLSearchParams(search);
  // U+FFFD stands where bytes are not UTF-8: only then they are looked at.
  if (!decoded.toString().includes("%EF%BF%BD")) return decoded;
  const exact = new URLSearchParams();
  for (const pair of search.split("&").filter((one) => one !== "")) {
    const at = pair.indexOf("=");
    if (at < 0) exact.append(written(pair), "");
    else exact.append(written(pair.slice(0, at)), written(pair.slice(at + 1)));
  }
  return exact;
}

function written(encoded: string): string {
  const bytes: number[] = [];
  for (const piece of encoded.replaceAll("+", " ").match(/%[0-9a-f]{2}|[^]/gi) ?? [])
    bytes.push(piece.length === 3 ? Number.parseInt(piece.slice(1), 16) : piece.charCodeAt(0));
  return writtenBy(Buffer.from(bytes));
}
