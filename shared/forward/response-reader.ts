/**
 * HTTP/1.x responses from bytes. What comes in was written inside a sandbox and is hostile: bounded, checked, and framed
 * anew by whoever passes it on. Pure.
 */

import { ChunkedReader } from "./chunked-reader.ts";

const MAX_HEAD_BYTES = 64 * 1024;
const CR = 0x0d;
const LF = 0x0a;

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

export interface ResponseSink {
  /** 1xx other than 101: the real head comes later. */
  onInformational(head: ResponseHead): void;
  /** Return true to take the connection over: what follows the head goes to `onTakeover`, nothing else is called. */
  onHead(head: ResponseHead): boolean;
  onTakeover(rest: Buffer): void;
  /** `last`: the body ends with this chunk. */
  onData(chunk: Buffer, last: boolean): void;
  /** Called once, after the last byte; `surplus` is true when the server sent more than it announced. */
  onEnd(rawTrailers: readonly string[], surplus: boolean): void;
}

/** Thrown for bytes that are not a response; the connection is of no more use. */
export class MalformedResponseError extends Error {
  override readonly name = "MalformedResponseError";
}

type State =
  | { readonly is: "head"; kept: Buffer | undefined }
  | { readonly is: "length"; left: number }
  | { readonly is: "chunked"; readonly reader: ChunkedReader }
  | { readonly is: "to-the-end" }
  | { readonly is: "done" };

const DONE: State = { is: "done" };

/** One response to one request. */
export class ResponseReader {
  readonly #sink: ResponseSink;
  readonly #bodiless: boolean;
  #state: State = { is: "head", kept: undefined };
  #seen = false;

  /** `method` decides whether a body can follow. */
  constructor(method: string, sink: ResponseSink) {
    this.#sink = sink;
    this.#bodiless = method === "HEAD";
  }

  /** Nothing of a response has arrived yet. */
  get untouched(): boolean {
    return !this.#seen;
  }

  /** @throws MalformedResponseError */
  push(chunk: Buffer): void {
    this.#seen = true;
    let rest: Buffer | undefined = chunk;
    while (rest !== undefined) rest = this.#step(rest);
  }

  /** The server has ended its side. @throws MalformedResponseError when the response was not complete. */
  finish(): void {
    if (this.#state.is === "to-the-end") {
      this.#state = DONE;
      this.#sink.onEnd([], false);
    } else if (this.#state.is !== "done") {
      throw new MalformedResponseError("the connection ended before the response did");
    }
  }

  /** Returns what is left for the next state, or undefined. */
  #step(chunk: Buffer): Buffer | undefined {
    const state = this.#state;
    switch (state.is) {
      case "head":
        return this.#readHead(state.kept === undefined ? chunk : Buffer.concat([state.kept, chunk]));
      case "length":
        this.#readLength(state, chunk);
        return undefined;
      case "chunked":
        this.#readChunked(state.reader, chunk);
        return undefined;
      case "to-the-end":
        this.#sink.onData(chunk, false);
        return undefined;
      case "done":
        throw new MalformedResponseError("bytes after the response");
    }
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    const end = headEnd(bytes);
    if (end === undefined || end.bodyAt > MAX_HEAD_BYTES) {
      if (bytes.length > MAX_HEAD_BYTES) throw new MalformedResponseError("the response head is too large");
      this.#state = { is: "head", kept: bytes };
      return undefined;
    }
    const { head, body } = parseHead(bytes.toString("latin1", 0, end.headEnds), this.#bodiless);
    const rest = bytes.length > end.bodyAt ? bytes.subarray(end.bodyAt) : undefined;
    if (head.status < 200 && head.status !== 101) {
      this.#state = { is: "head", kept: undefined };
      this.#sink.onInformational(head);
      return rest;
    }
    if (this.#sink.onHead(head)) {
      this.#state = DONE;
      this.#sink.onTakeover(rest ?? Buffer.alloc(0));
      return undefined;
    }
    if (body === "none" || body === 0) {
      this.#end([], rest !== undefined);
      return undefined;
    }
    if (body === "chunked") this.#state = { is: "chunked", reader: new ChunkedReader(MAX_HEAD_BYTES) };
    else if (body === "to-the-end") this.#state = { is: "to-the-end" };
    else this.#state = { is: "length", left: body };
    return rest;
  }

  #readLength(state: { left: number }, chunk: Buffer): void {
    if (chunk.length < state.left) {
      state.left -= chunk.length;
      this.#sink.onData(chunk, false);
      return;
    }
    const surplus = chunk.length > state.left;
    this.#sink.onData(surplus ? chunk.subarray(0, state.left) : chunk, true);
    this.#end([], surplus);
  }

  #readChunked(reader: ChunkedReader, chunk: Buffer): void {
    const problem = reader.push(chunk);
    if (problem !== undefined) throw new MalformedResponseError(problem);
    const ended = reader.trailers !== undefined;
    const pieces = reader.take();
    const lastIndex = pieces.length - 1;
    pieces.forEach((piece, index) => this.#sink.onData(piece, ended && index === lastIndex));
    if (reader.trailers !== undefined) this.#end(parseFields(reader.trailers), reader.surplus);
  }

  #end(rawTrailers: readonly string[], surplus: boolean): void {
    this.#state = DONE;
    this.#sink.onEnd(rawTrailers, surplus);
  }
}

/** Where the head stops. Servers written by hand end their lines with a bare LF; the first line tells which kind it is. */
function headEnd(bytes: Buffer): { headEnds: number; bodyAt: number } | undefined {
  const firstLine = bytes.indexOf(LF);
  if (firstLine < 0) return undefined;
  const separator = firstLine > 0 && bytes[firstLine - 1] === CR ? "\r\n\r\n" : "\n\n";
  const at = bytes.indexOf(separator, Math.max(0, firstLine - 1), "latin1");
  return at < 0 ? undefined : { headEnds: at, bodyAt: at + separator.length };
}

type Body = number | "none" | "chunked" | "to-the-end";

function parseHead(text: string, bodiless: boolean): { head: ResponseHead; body: Body } {
  const firstEnd = text.indexOf("\n");
  const statusLine = (firstEnd < 0 ? text : text.slice(0, firstEnd)).replace(/\r$/, "");
  const match = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/.exec(statusLine);
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
function parseFields(text: string): string[] {
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
    const name = (rawHeaders[at] ?? "").toLowerCase();
    const value = rawHeaders[at + 1] ?? "";
    if (name === "content-length") facts.contentLength = readLength(value, facts.contentLength);
    else if (name === "content-type") facts.contentType ??= value;
    else if (name === "transfer-encoding") facts.chunked = readCoding(value) || facts.chunked;
    else if (name === "connection") {
      facts.close ||= /(^|,)\s*close\s*(,|$)/i.test(value);
      facts.keepAlive ||= /(^|,)\s*keep-alive\s*(,|$)/i.test(value);
    } else if (name === "keep-alive") {
      const seconds = /\btimeout=(\d{1,6})\b/i.exec(value)?.[1];
      if (seconds !== undefined) facts.idleHintMs = Number(seconds) * 1000;
    }
  }
  return facts;
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
