/**
 * HTTP/1.x responses from bytes. What comes in was written inside a sandbox and is hostile: bounded, checked, and framed
 * anew by whoever passes it on. Pure.
 */

import { ChunkedReader } from "./chunked-reader.ts";
import {
  type HeadReader,
  MAX_HEAD_BYTES,
  MalformedResponseError,
  parseFields,
  type ResponseHead,
} from "./response-head.ts";

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
  readonly #heads: HeadReader;
  #state: State = { is: "head", kept: undefined };
  #seen = false;

  /** `method` decides whether a body can follow; `heads` belongs to the connection. */
  constructor(method: string, sink: ResponseSink, heads: HeadReader) {
    this.#sink = sink;
    this.#heads = heads;
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
    const found = this.#heads.read(bytes, this.#bodiless);
    if (found === undefined) {
      this.#state = { is: "head", kept: bytes };
      return undefined;
    }
    const { head, body } = found;
    const rest = bytes.length > found.bodyAt ? bytes.subarray(found.bodyAt) : undefined;
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
