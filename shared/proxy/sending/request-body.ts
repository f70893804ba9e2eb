/** A request's body on its way to the server: as it comes, as fast as the server takes it. */

import type { ClientRequest, IncomingMessage } from "node:http";
import { type BodyFraming, forwardableTrailers } from "../raw-headers.ts";

/** A server of ours discards the unread rest of a body up to this size after its answer. */
const SURELY_READ_BYTES = 64 * 1024;

/** A server that ignores `Expect` must not stop the upload for ever (RFC 9110 §10.1.1). */
const CONTINUE_WAIT_MS = 1_000;

export interface RequestBodyOptions {
  readonly framing: BodyFraming;
  /** As in `Patience`. */
  readonly stallMs: number;
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
  /** True when the whole body has been written to the connection. */
  sent = false;

  constructor(request: IncomingMessage, call: ClientRequest, options: RequestBodyOptions) {
    this.#request = request;
    this.#call = call;
    this.#options = options;
  }

  /**
   * Whether a server of ours has surely read the body. A written body may be unread: megabytes fit into the buffers of two
   * sockets, and a server that answers early (a full disk) may leave them there, with every later request.
   */
  get surelyRead(): boolean {
    return this.sent && this.#bytes <= SURELY_READ_BYTES;
  }

  /** Part of it is still to come, or has not left this program. */
  get unfinished(): boolean {
    return this.started && !(this.sent && this.#call.writableFinished);
  }

  start(): void {
    if (this.started || this.#stopped) return;
    this.started = true;
    const { socket } = this.#request;
    // There is no listener of "timeout", so Node closes the connection.
    socket.setTimeout(this.#options.stallMs);
    this.#request.once("end", () => socket.setTimeout(0));
    this.#request.on("data", this.#onData);
    this.#request.once("end", this.#onEnd);
    this.#call.on("drain", this.#onDrain);
    // Sends the head alone if no body has arrived yet.
    setImmediate(() => {
      if (!this.#stopped && this.#bytes === 0) this.#call.flushHeaders();
    });
  }

  /** Starts when the server asks for the body, or has ignored `Expect` for a while; `before` is called just before. */
  startOnContinue(before: () => void): void {
    if (this.#stopped) return;
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

  /** The answer is over: the client may send the rest of the body for so long, before both connections end. */
  finishWithin(limitMs: number): void {
    const timer = setTimeout(() => {
      this.#call.destroy();
      this.#request.socket.destroy();
    }, limitMs);
    this.#call.once("close", () => clearTimeout(timer));
  }

  stop(): void {
    clearTimeout(this.#continueTimer);
    if (this.#stopped) return;
    this.#stopped = true;
    this.#request.removeListener("data", this.#onData);
    this.#request.removeListener("end", this.#onEnd);
    this.#call.removeListener("drain", this.#onDrain);
    // The answer came early: the rest of the body has to be read, or the client's next request is never reached.
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
