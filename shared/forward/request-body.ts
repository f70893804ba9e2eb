/** A request's body on its way to the server: as it comes, as fast as the server takes it. */

import type { IncomingMessage } from "node:http";
import { type BodyFraming, forwardableTrailers } from "./raw-headers.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";

/** What a server leaves unread of a body no larger than this, it lets pass behind its answer: one read, for most. */
const SURELY_READ_BYTES = 64 * 1024;

export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #connection: UpstreamConnection;
  readonly #chunked: boolean;
  #stopped = false;
  #bytes = 0;
  started = false;
  /** The whole body has been handed to the connection. */
  sent = false;

  constructor(request: IncomingMessage, connection: UpstreamConnection, framing: BodyFraming) {
    this.#request = request;
    this.#connection = connection;
    this.#chunked = framing === "chunked";
  }

  /**
   * Whether the server can be taken to have read it. Handed over is not read: megabytes fit between two sockets, and a
   * server that has answered without them may never look at them, nor at what is sent behind them.
   */
  get surelyRead(): boolean {
    return this.sent && this.#bytes <= SURELY_READ_BYTES;
  }

  start(): void {
    this.started = true;
    this.#request.on("data", this.#onData);
    this.#request.once("end", this.#onEnd);
  }

  resume(): void {
    if (!this.#stopped && this.started) this.#request.resume();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#request.removeListener("data", this.#onData);
    this.#request.removeListener("end", this.#onEnd);
    // Answered early: what is still to come has to be read, or the client's next request is never reached.
    if (this.started && !this.sent) this.#request.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    if (!this.#chunked) {
      if (!this.#connection.write(chunk)) this.#request.pause();
      return;
    }
    this.#connection.cork();
    this.#connection.write(`${chunk.length.toString(16)}\r\n`);
    this.#connection.write(chunk);
    const room = this.#connection.write("\r\n");
    this.#connection.uncork();
    if (!room) this.#request.pause();
  };

  readonly #onEnd = (): void => {
    this.sent = true;
    this.stop();
    if (!this.#chunked) return;
    const trailers = forwardableTrailers(this.#request.rawTrailers);
    let text = "0\r\n";
    for (let at = 0; at + 1 < trailers.length; at += 2) text += `${trailers[at]}: ${trailers[at + 1]}\r\n`;
    this.#connection.write(`${text}\r\n`);
  };
}
