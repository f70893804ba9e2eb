/**
 * Pure: file names as text. The kernel's names are bytes; the protocol has text only. A name that is UTF-8 is written as it
 * is. In any other, U+FFFD and two hexadecimal digits stand for each byte that is not text: `caf�e9`. Each name has one
 * written form, and each text names one file.
 */

import { isUtf8 } from "node:buffer";

const MARK = "\uFFFD";
const MARK_BYTES = Buffer.from(MARK);
const ESCAPE = /\uFFFD([89a-f][0-9a-f])/;
const ESCAPES = /\uFFFD([89a-f][0-9a-f])/g;
const SLASH = 0x2f;

/** The written form of a name, or of a path, as the kernel has it. */
export function nameOf(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  if (!text.includes(MARK)) return text;
  return partsOf(bytes).map(writtenForm).join("/");
}

/** What a client wrote, where its protocol lets it write bytes: text as it is, anything else in the form of `nameOf`. */
export function writtenBy(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString("utf8") : nameOf(bytes);
}

/** The kernel's form of a path: the opposite of `nameOf`. */
export function onDisk(path: string): string | Buffer {
  if (!path.includes(MARK)) return path;
  const parts = path.split("/").flatMap((part) => [Buffer.of(SLASH), bytesOf(part)]);
  return Buffer.concat(parts.slice(1));
}

/** The one form of a path of which a client may have written another. */
export function canonicalPath(path: string): string {
  const bytes = onDisk(path);
  return typeof bytes === "string" ? bytes : nameOf(bytes);
}

function writtenForm(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  // A text that could be taken for the form of another name is escaped, too.
  if (isUtf8(bytes) && !ESCAPE.test(text)) return text;
  let written = "";
  for (let at = 0; at < bytes.length; ) {
    const sequence = bytes.subarray(at, at + sequenceLength(bytes[at] ?? 0));
    const isText = isUtf8(sequence);
    if (isText && !sequence.equals(MARK_BYTES)) written += sequence.toString("utf8");
    else for (const byte of isText ? sequence : sequence.subarray(0, 1)) written += MARK + byte.toString(16);
    at += isText ? sequence.length : 1;
  }
  return written;
}

function bytesOf(name: string): Buffer {
  const literal = Buffer.from(name);
  if (!ESCAPE.test(name)) return literal;
  const pieces = name.split(ESCAPES).map((piece, index) => Buffer.from(piece, index % 2 === 0 ? "utf8" : "hex"));
  const bytes = Buffer.concat(pieces);
  return writtenForm(bytes) === name ? bytes : literal;
}

function partsOf(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(SLASH); at >= 0; at = bytes.indexOf(SLASH, from)) {
    parts.push(bytes.subarray(from, at));
    from = at + 1;
  }
  return [...parts, bytes.subarray(from)];
}

/** By the first byte; a byte that starts no sequence stands alone. */
function sequenceLength(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}
