/** A request's body on its way to the server: as it comes, as fast as the server takes it. */

import type { ClientRequest, IncomingMessage } from "node:http";
import { type BodyFraming, forwardableTrailers } from "../raw-headers.ts";

/** What a server of ours leaves unread of a body no larger than this, it lets pass behind its answer. */
const SURELY_READ_BYTES = 64 * 1024;
/** Neither a byte of the body nor one of the answer for so long: the client is gone, or means to hold the connection. */
const IDLE_LIMIT_MS = 600_000;

/** A server that ignores `Expect` must not stop the upload for ever (RFC 9110 §10.1.1). */
const CONTINUE_WAIT_MS = 1_000;

export interface RequestBodyOptions {
  readonly framing: BodyFraming;
  /** Lower-case names that stop here, in trailers too. */
  readonly drops: (name: string, value: string) => boolean;
}

export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #call: ClientRequest;
  readonly #options: RequestBodyOptions;
  #stopped = false;
  #bytes = 0;
  #continueTimer: NodeJS.Timeout | undefined;
  started = false;
  /** The whole body has been handed to the connection. */
  sent = false;

  constructor(request: IncomingMessage, call: ClientRequest, options: RequestBodyOptions) {
    this.#request = request;
    this.#call = call;
    this.#options = options;
  }

  /**
   * Whether a server of ours can be taken to have read it. Handed over is not read: megabytes fit between two sockets, and
   * one that answers early (a full disk) may leave them there, with the next request behind them.
   */
  get surelyRead(): boolean {
    return this.sent && this.#bytes <= SURELY_READ_BYTES;
  }

  start(): void {
    if (this.started) return;
    this.started = true;
    const { socket } = this.#request;
    // Nothing listens: Node then closes the connection.
    socket.setTimeout(IDLE_LIMIT_MS);
    this.#request.once("end", () => socket.setTimeout(0));
    this.#request.on("data", this.#onData);
    this.#request.once("end", this.#onEnd);
    this.#call.on("drain", this.#onDrain);
    // A head whose body is not there yet does not wait for it.
    setImmediate(() => {
      if (!this.#stopped && this.#bytes === 0) this.#call.flushHeaders();
    });
  }

  /** Starts when the server asks for the body, or has ignored `Expect` for a while; `before` is called just before. */
  startOnContinue(before: () => void): void {
    const start = () => {
      if (this.started || this.#stopped) return;
      clearTimeout(this.#continueTimer);
      before();
      this.start();
    };
    this.#call.flushHeaders();
    this.#call.once("continue", start);
    this.#continueTimer = setTimeout(start, CONTINUE_WAIT_MS);
  }

  /** The server has answered: a body it did not ask for stays with the client. */
  stopUnlessStarted(): void {
    if (!this.started) this.stop();
  }

  stop(): void {
    clearTimeout(this.#continueTimer);
    if (this.#stopped) return;
    this.#stopped = true;
    this.#request.removeListener("data", this.#onData);
    this.#request.removeListener("end", this.#onEnd);
    this.#call.removeListener("drain", this.#onDrain);
    // Answered early: what is still to come has to be read, or the client's next request is never reached.
    if (this.started && !this.sent) this.#request.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    if (!this.#call.write(chunk)) this.#request.pause();
  };

  readonly #onDrain = (): void => {
    this.#request.resume();
  };

  readonly #onEnd = (): void => {
    this.sent = true;
    this.stop();
    if (this.#options.framing === "chunked") {
      const trailers = forwardableTrailers(this.#request.rawTrailers, this.#options.drops);
      if (trailers.length > 0) this.#call.addTrailers(trailers);
    }
    this.#call.end();
  };
}
