/** The response to a simple request, written straight to the client's socket: HTTP/1.1, one at a time, framed here. */

import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import type { ClientResponse } from "./client.ts";

/** Up to here a copy into the head is cheaper than a second buffer in the system call. */
const MERGE_BYTES = 16 * 1024;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A field value or reason phrase; a line break in one would begin a header of the sandbox's choosing. */
const TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface SimpleResponseOptions {
  readonly head: boolean;
  readonly keepAlive: boolean;
}

/** `end` has been called and everything is with the kernel: `finish`, then `close`. Gone before that: only `close`. */
export class SimpleResponse extends EventEmitter implements ClientResponse {
  readonly #socket: Socket;
  #head: string | undefined;
  #bodiless: boolean;
  #chunked = false;
  #trailers = "";
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  destroyed = false;
  shouldKeepAlive: boolean;

  constructor(socket: Socket, options: SimpleResponseOptions) {
    super();
    this.#socket = socket;
    this.#bodiless = options.head;
    this.shouldKeepAlive = options.keepAlive;
  }

  writeContinue(): void {
    throw new Error("a simple request expects nothing");
  }

  writeProcessing(): void {
    this.#socket.write("HTTP/1.1 102 Processing\r\n\r\n");
  }

  writeEarlyHints(hints: Record<string, string>): void {
    let text = "HTTP/1.1 103 Early Hints\r\n";
    for (const [name, value] of Object.entries(hints)) text += field(name, value);
    this.#socket.write(`${text}\r\n`, "latin1");
  }

  writeHead(status: number, reason: string, headers: readonly string[]): void {
    if (this.headersSent) throw new Error("the head has been written");
    if (!TEXT.test(reason)) throw new Error("the reason has a character that cannot be sent");
    if (status === 204 || status === 304) this.#bodiless = true;
    let text = `HTTP/1.1 ${status} ${reason}\r\n`;
    let sized = false;
    let dated = false;
    for (let at = 0; at + 1 < headers.length; at += 2) {
      const name = headers[at] ?? "";
      text += field(name, headers[at + 1] ?? "");
      if (name.length === 4) dated ||= name.toLowerCase() === "date";
      else if (name.length === 14) sized ||= name.toLowerCase() === "content-length";
    }
    if (!dated) text += `Date: ${new Date().toUTCString()}\r\n`;
    if (!sized && !this.#bodiless) {
      this.#chunked = true;
      text += "Transfer-Encoding: chunked\r\n";
    }
    this.headersSent = true;
    this.#head = `${text}Connection: ${this.shouldKeepAlive ? "keep-alive" : "close"}\r\n\r\n`;
  }

  flushHeaders(): void {
    const head = this.#takeHead();
    if (head !== "" && !this.destroyed) this.#socket.write(head, "latin1");
  }

  write(chunk: Buffer): boolean {
    if (this.destroyed || this.writableEnded) return true;
    const head = this.#takeHead();
    if (chunk.length === 0 || this.#bodiless) return head === "" || this.#socket.write(head, "latin1");
    const before = this.#chunked ? `${head}${chunk.length.toString(16)}\r\n` : head;
    const after = this.#chunked ? "\r\n" : "";
    if (before === "") return this.#socket.write(chunk);
    if (chunk.length <= MERGE_BYTES) return this.#socket.write(before + chunk.toString("latin1") + after, "latin1");
    this.#socket.cork();
    this.#socket.write(before, "latin1");
    let room = this.#socket.write(chunk);
    if (after !== "") room = this.#socket.write(after, "latin1");
    this.#socket.uncork();
    return room;
  }

  addTrailers(trailers: readonly [string, string][]): void {
    for (const [name, value] of trailers) this.#trailers += field(name, value);
  }

  end(chunk?: Buffer | string): void {
    if (this.writableEnded || this.destroyed) return;
    if (!this.headersSent) throw new Error("a response needs a head");
    const body = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    const last = this.#chunked ? `0\r\n${this.#trailers}\r\n` : "";
    const some = body !== undefined && body.length > 0 && !this.#bodiless;
    if (some && last === "" && body.length <= MERGE_BYTES) {
      this.#socket.write(this.#takeHead() + body.toString("latin1"), "latin1", this.#sent);
    } else {
      this.#socket.cork();
      if (some) this.write(body);
      this.#socket.write(this.#takeHead() + last, "latin1", this.#sent);
      this.#socket.uncork();
    }
    this.writableEnded = true;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Told by the owner of the socket. */
  onSocketDrain(): void {
    if (!this.writableEnded) this.emit("drain");
  }

  /** Told by the owner of the socket. */
  onSocketClose(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }

  readonly #sent = (): void => {
    if (this.destroyed) return;
    this.writableFinished = true;
    this.emit("finish");
    this.destroyed = true;
    this.emit("close");
  };

  #takeHead(): string {
    const head = this.#head ?? "";
    this.#head = undefined;
    return head;
  }
}

/** @throws when it would not be one line. */
function field(name: string, value: string): string {
  if (!TOKEN.test(name)) throw new Error("a header name has a character that cannot be sent");
  if (!TEXT.test(value)) throw new Error("a header value has a character that cannot be sent");
  return `${name}: ${value}\r\n`;
}
