/** The head of an HTTP/1.x response: where it ends, what it says, how the body is framed. Hostile input. Pure. */

export const MAX_HEAD_BYTES = 64 * 1024;
const USUAL_HEAD_BYTES = 2 * 1024;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*?))?\r?$/;

export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  readonly rawHeaders: readonly string[];
  /** Undefined: not known in advance. */
  readonly contentLength: number | undefined;
  /** Another request may follow on this connection. */
  readonly keepAlive: boolean;
  /** How long the server says it keeps an idle connection (`Keep-Alive: timeout=`), milliseconds. */
  readonly idleHintMs: number | undefined;
  readonly contentType: string | undefined;
}

/** Bytes, or how their end is known. */
type ResponseBody = number | "none" | "chunked" | "to-the-end";

export interface ReadHead {
  readonly head: ResponseHead;
  readonly body: ResponseBody;
}

/** Thrown for bytes that are not a response; the connection is of no more use. */
export class MalformedResponseError extends Error {
  override readonly name = "MalformedResponseError";
}

/** The heads of one connection. Servers repeat them, but for the date: the same text is read once. */
export class HeadReader {
  #text = "";
  #bodiless = false;
  #read: ReadHead | undefined;

  /** Undefined: the head is not whole yet. @throws MalformedResponseError */
  read(bytes: Buffer, bodiless: boolean): (ReadHead & { readonly bodyAt: number }) | undefined {
    const found = findHead(bytes);
    if (found === undefined) {
      if (bytes.length > MAX_HEAD_BYTES) throw new MalformedResponseError("the response head is too large");
      return undefined;
    }
    if (this.#read === undefined || found.text !== this.#text || bodiless !== this.#bodiless) {
      this.#read = parseHead(found.text, bodiless);
      this.#text = found.text;
      this.#bodiless = bodiless;
    }
    return { head: this.#read.head, body: this.#read.body, bodyAt: found.bodyAt };
  }
}

/** The head, without the empty line that ends it, and where the body begins. */
function findHead(bytes: Buffer): { text: string; bodyAt: number } | undefined {
  // Most heads are short, and searching text is much faster than searching bytes.
  return (
    findIn(bytes.toString("latin1", 0, Math.min(bytes.length, USUAL_HEAD_BYTES))) ??
    (bytes.length > USUAL_HEAD_BYTES ? findIn(bytes.toString("latin1", 0, MAX_HEAD_BYTES)) : undefined)
  );
}

/** Servers written by hand end their lines with a bare LF; the first line tells which kind it is. */
function findIn(text: string): { text: string; bodyAt: number } | undefined {
  const firstLine = text.indexOf("\n");
  if (firstLine < 0) return undefined;
  const separator = text[firstLine - 1] === "\r" ? "\r\n\r\n" : "\n\n";
  const at = text.indexOf(separator, Math.max(0, firstLine - 1));
  return at < 0 ? undefined : { text: text.slice(0, at), bodyAt: at + separator.length };
}

function parseHead(text: string, bodiless: boolean): ReadHead {
  const firstEnd = text.indexOf("\n");
  const match = STATUS_LINE.exec(firstEnd < 0 ? text : text.slice(0, firstEnd));
  if (match === null) throw new MalformedResponseError("not an HTTP/1 response");
  const status = Number(match[2]);
  const rawHeaders = firstEnd < 0 ? [] : parseFields(text.slice(firstEnd + 1));
  const facts = readFacts(rawHeaders);
  const noBody = bodiless || status < 200 || status === 204 || status === 304;
  const body = noBody ? "none" : facts.chunked ? "chunked" : (facts.contentLength ?? "to-the-end");
  const modern = match[1] === "1";
  const head: ResponseHead = {
    status,
    reason: match[3] ?? "",
    rawHeaders,
    contentLength: facts.chunked ? undefined : facts.contentLength,
    // Both framings at once is how responses are smuggled: the body is read as chunked, the connection is not used again.
    keepAlive:
      (modern ? !facts.close : facts.keepAlive) &&
      body !== "to-the-end" &&
      !(facts.chunked && facts.contentLength !== undefined),
    idleHintMs: facts.idleHintMs,
    contentType: facts.contentType,
  };
  return { head, body };
}

/** Header lines → name, value, name, value. Characters are checked by whoever writes them out. */
export function parseFields(text: string): string[] {
  const raw: string[] = [];
  if (text === "") return raw;
  for (const ended of text.split("\n")) {
    const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
    const colon = line.indexOf(":");
    // A line that begins with a space continues the one before (obsolete folding): refused, as Node's own parser does.
    if (colon <= 0 || line.charCodeAt(0) <= 0x20) throw new MalformedResponseError("a header line is not one");
    raw.push(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return raw;
}

interface Facts {
  chunked: boolean;
  close: boolean;
  keepAlive: boolean;
  contentLength: number | undefined;
  idleHintMs: number | undefined;
  contentType: string | undefined;
}

function readFacts(rawHeaders: readonly string[]): Facts {
  const facts: Facts = {
    chunked: false,
    close: false,
    keepAlive: false,
    contentLength: undefined,
    idleHintMs: undefined,
    contentType: undefined,
  };
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    // The names that matter have one of these lengths; most headers are passed over without a copy.
    const { length } = name;
    if (length === 10 || length === 12 || length === 14 || length === 17) {
      readFact(name.toLowerCase(), rawHeaders[at + 1] ?? "", facts);
    }
  }
  return facts;
}

function readFact(name: string, value: string, facts: Facts): void {
  if (name === "content-length") facts.contentLength = readLength(value, facts.contentLength);
  else if (name === "content-type") facts.contentType ??= value;
  else if (name === "transfer-encoding") facts.chunked = readCoding(value) || facts.chunked;
  else if (name === "connection") {
    for (const option of value.toLowerCase().split(",")) {
      if (option.trim() === "close") facts.close = true;
      else if (option.trim() === "keep-alive") facts.keepAlive = true;
    }
  } else if (name === "keep-alive") {
    const seconds = /\btimeout=(\d{1,6})\b/i.exec(value)?.[1];
    if (seconds !== undefined) facts.idleHintMs = Number(seconds) * 1000;
  }
}

function readLength(value: string, before: number | undefined): number {
  if (!/^\d{1,15}$/.test(value)) throw new MalformedResponseError("Content-Length is not a number");
  const length = Number(value);
  if (before !== undefined && before !== length) throw new MalformedResponseError("Content-Length is given twice");
  return length;
}

function readCoding(value: string): boolean {
  const coding = value.toLowerCase();
  if (coding === "chunked") return true;
  if (coding === "identity") return false;
  throw new MalformedResponseError("only the chunked transfer coding is supported");
}
