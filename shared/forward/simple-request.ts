/**
 * The one shape most requests have, recognised without a parser: a whole head in one piece, no body, no upgrade, nothing
 * behind it. Everything that is not exactly that goes to Node's parser, so nothing here has to be interpreted. Pure.
 */

import type { ClientRequest } from "./client.ts";

const MAX_BYTES = 16 * 1024;
const MAX_HEADERS = 100;
const REQUEST_LINE = /^(GET|HEAD|DELETE|OPTIONS) (\/[!"$-~]*) HTTP\/1\.1$/;
/** RFC 9110 §5.1 token, §5.5 field value. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** Any of these changes how a message is framed or what becomes of its connection. */
const NOT_SIMPLE: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export interface SimpleRequest extends ClientRequest {
  /** False when the client closes after this one. */
  readonly keepAlive: boolean;
}

type Fields = Pick<SimpleRequest, "rawHeaders" | "keepAlive">;

/**
 * One client's requests. Clients repeat their headers from request to request: the same text is read once, and gives the
 * same list.
 */
export class SimpleReader {
  #text = "";
  #fields: Fields | undefined;

  /** Undefined: not simple, or not HTTP at all; the bytes are untouched. */
  read(bytes: Buffer): SimpleRequest | undefined {
    if (bytes.length > MAX_BYTES) return undefined;
    const text = bytes.toString("latin1");
    const end = text.length - 4;
    // The first empty line is the end of what came: no body, no second request.
    if (end < 0 || text.indexOf("\r\n\r\n") !== end) return undefined;
    const lineEnd = text.indexOf("\r\n");
    const first = REQUEST_LINE.exec(text.slice(0, lineEnd));
    if (first === null || lineEnd === end) return undefined;
    const fields = this.#read(text.slice(lineEnd + 2, end));
    if (fields === undefined) return undefined;
    const { rawHeaders, keepAlive } = fields;
    return { method: first[1] ?? "", url: first[2] ?? "", httpVersionMinor: 1, rawHeaders, keepAlive };
  }

  #read(text: string): Fields | undefined {
    if (text !== this.#text) {
      this.#fields = readFields(text);
      this.#text = text;
    }
    return this.#fields;
  }
}

function readFields(text: string): Fields | undefined {
  const lines = text.split("\r\n");
  if (lines.length > MAX_HEADERS) return undefined;
  const rawHeaders: string[] = [];
  let hosts = 0;
  let keepAlive = true;
  for (const line of lines) {
    const field = FIELD.exec(line);
    if (field === null) return undefined;
    const name = field[1] ?? "";
    const value = (field[2] ?? "").trimEnd();
    const lower = name.toLowerCase();
    if (NOT_SIMPLE.has(lower)) return undefined;
    if (lower === "host") hosts++;
    if (lower === "connection") {
      const option = value.toLowerCase();
      if (option === "close") keepAlive = false;
      else if (option !== "keep-alive") return undefined;
    }
    rawHeaders.push(name, value);
  }
  return hosts === 1 ? { rawHeaders, keepAlive } : undefined;
}
